// Before anything is painted: a page that begins in the wrong colours flashes.
{
  const chosen = localStorage.getItem("fairlane.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
