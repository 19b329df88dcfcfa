"use strict";

// Before anything is painted: the theme that the reader chose here, if it is not the system's.
{
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
