// @ts-check
// Style sheets that only some pages need. They come with these pages, to keep the first view small.

/** @type {Map<string, Promise<unknown>>} */
const loaded = new Map();

/** @param {string} name The file in `style/`. */
export function loadStyle(name) {
  const loading = loaded.get(name) ?? fetchStyle(name);
  loaded.set(name, loading);
  return loading;
}

/** @param {string} name */
function fetchStyle(name) {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = new URL(`../style/${name}`, import.meta.url).href;
  document.head.append(sheet);
  return new Promise((done, failed) => {
    sheet.onload = done;
    sheet.onerror = failed;
  });
}
