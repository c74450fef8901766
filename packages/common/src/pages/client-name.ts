/** Browsers by a mark in `User-Agent`; the first that fits, since most claim to be others too. */
const BROWSERS: readonly [mark: RegExp, name: string][] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Chrome|Chromium|CriOS)\//, 'Chrome'],
  [/\bVersion\/.*\bSafari\//, 'Safari'],
]

const SYSTEMS: readonly [mark: RegExp, name: string][] = [
  [/\bWindows\b/, 'Windows'],
  [/\bAndroid\b/, 'Android'],
  [/\b(iPhone|iPad|iPod)\b/, 'iOS'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

const MAX_LENGTH = 60

/** Names a client for its owner, such as `Firefox, Windows`; an application by the beginning of its own name. */
export function clientName(userAgent: string | null): string | undefined {
  if (!userAgent) return undefined
  const nameOf = (marks: typeof BROWSERS) => marks.find(([mark]) => mark.test(userAgent))?.[1]
  const known = [nameOf(BROWSERS), nameOf(SYSTEMS)].filter((name) => name !== undefined)
  return known.length > 0 ? known.join(', ') : userAgent.slice(0, MAX_LENGTH)
}
