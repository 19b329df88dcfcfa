"use strict";

// Sets the theme that the reader chose on this page, before anything is painted.
{
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
