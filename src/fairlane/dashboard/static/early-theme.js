// @ts-check
// Set the theme before anything is painted: a page that begins in the wrong colours flashes. `lib/theme.js`
// takes over later.
{
  const chosen = localStorage.getItem("fairlane.theme");
  const dark =
    chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
