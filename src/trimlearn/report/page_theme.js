// Puts on the theme that was chosen last, before anything is drawn.
(() => {
  try {
    const theme = localStorage.getItem("trimlearn-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is denied: the system's theme stays.
  }
})();
