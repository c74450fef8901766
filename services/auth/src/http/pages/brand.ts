// Colors of pages from PAGES_COLOR: text on a button, and links on the card, keep a contrast of 4.5 (WCAG 2.2, 1.4.3).

/** Darkest surface of the light pages behind a link, and lightest one of the dark pages (kit.css `--shade`). */
const LIGHT_GROUND = '#eef0f4'
const DARK_GROUND = '#232831'

const CONTRAST = 4.5

type Rgb = readonly [red: number, green: number, blue: number]

/** Style sheet that replaces the accent of kit.css. */
export function brandCss(color: string): string {
  const light = readableOn(LIGHT_GROUND, color)
  const dark = readableOn(DARK_GROUND, color)
  const set = (accent: string, fill: string) =>
    `:root { --accent: ${accent}; --fill: ${fill}; --on-fill: ${textOn(fill)} }`
  return `${set(light, color)}\n@media (prefers-color-scheme: dark) { ${set(dark, dark)} }\n`
}

/** Mixes a color with black or white until it is readable on the ground. */
function readableOn(ground: string, color: string): string {
  const end: Rgb = luminance(rgbOf(ground)) > 0.5 ? [0, 0, 0] : [255, 255, 255]
  for (let share = 0; share < 1; share += 0.02) {
    const mixed = rgbOf(color).map((part, index) => Math.round(part + (end[index as 0] - part) * share))
    const candidate = `#${mixed.map((part) => part.toString(16).padStart(2, '0')).join('')}`
    if (contrast(candidate, ground) >= CONTRAST) return candidate
  }
  return `#${end.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

/** One of the two always has a contrast of 4.5 and more. */
const textOn = (fill: string) => (contrast(fill, '#ffffff') >= contrast(fill, '#000000') ? '#fff' : '#000')

/** Contrast of two colors, 1 to 21 (WCAG 2.2, relative luminance). */
export function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [one, other].map((color) => luminance(rgbOf(color))).toSorted((a, b) => b - a)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(rgb: Rgb): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const rgbOf = (color: string): Rgb =>
  [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16)) as unknown as Rgb
