// What a reader chose, kept by the browser where it lets a local file keep anything.

const KEY = "tritonsmith-passes-report-2";
const DEFAULTS = {
  split: null, // null: as the width says
  wrap: null,
  fold: true,
  printed: false,
  hide: false,
  source: false,
  theme: "",
};

export function load() {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY)) };
  } catch {
    return { ...DEFAULTS };
  }
}

export function save(settings) {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // Then it holds until the page is closed.
  }
}

/** Light or dark: as chosen, or as the system says and goes on saying. */
export function useTheme(settings) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    document.documentElement.dataset.theme = settings.theme || (dark.matches ? "dark" : "light");
  };
  dark.addEventListener("change", apply);
  apply();
  return () => {
    settings.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    apply();
    save(settings);
  };
}
