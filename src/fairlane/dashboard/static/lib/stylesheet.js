// @ts-check
// Style sheets that only one page needs. They come with that page, to keep the first view small.

/** @param {string} name The file in `style/`. */
export function loadStyle(name) {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = new URL(`../style/${name}`, import.meta.url).href;
  document.head.append(sheet);
  return new Promise((loaded, failed) => {
    sheet.onload = loaded;
    sheet.onerror = failed;
  });
}
