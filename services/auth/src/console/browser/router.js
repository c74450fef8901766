// Addresses of the console: `#/users/…?filter=…`. A fragment needs no route of the server and survives a reload.

/** @typedef {import('./page.js').Screen} Screen */
/** @typedef {Record<string, string | number | null | undefined>} Query */

/** Returns the link to a screen; empty parameters are left out. @param {string} path @param {Query} [query] */
export function link(path, query = {}) {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return `#${path}${text && `?${text}`}`
}

/** Goes to a screen, or opens it anew. @param {string} path @param {Query} [query] */
export function go(path, query) {
  const target = link(path, query)
  if (location.hash === target) dispatchEvent(new HashChangeEvent('hashchange'))
  else location.hash = target
}

/** Path and parameters of the present address; an empty one is the first screen. */
export function present() {
  const [path = '', query = ''] = location.hash.slice(1).split(/\?(.*)/s, 2)
  return { path, query: new URLSearchParams(query) }
}

/**
 * Finds the screen of a path, with its named parts.
 * @param {readonly Screen[]} screens @param {string} path
 */
export function match(screens, path) {
  const parts = path.split('/')
  for (const screen of screens) {
    const names = screen.path.split('/')
    if (names.length !== parts.length) continue
    if (!names.every((name, index) => name.startsWith(':') || name === parts[index])) continue
    const params = paramsOf(names, parts)
    // Screens ask for `/admin/…/name`: a part of a path would be another endpoint.
    return Object.values(params).some((name) => /[/\\?#]|^\.\.?$/.test(name)) ? undefined : { screen, params }
  }
  return undefined
}

/** @param {string[]} names @param {string[]} parts @returns {Record<string, string>} */
const paramsOf = (names, parts) =>
  Object.fromEntries(
    names.flatMap((name, index) => (name.startsWith(':') ? [[name.slice(1), decoded(parts[index] ?? '')]] : [])),
  )

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
