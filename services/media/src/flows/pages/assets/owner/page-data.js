// Values that the service gave the scripts of this page: texts in the reader's language among them.

/** @type {any} */
export const data = JSON.parse(document.getElementById('page-data')?.textContent ?? '{}')

/** @type {Record<string, string>} */
const words = data.words ?? {}

/**
 * Returns a text of the page; `{name}` in it stands for a value. A text whose `count` is 1 may have its own words,
 * under the key with `One` at its end.
 * @param {string} key @param {Record<string, string | number>} [values]
 */
export const text = (key, values = {}) =>
  ((values.count === 1 && words[`${key}One`]) || (words[key] ?? key)).replace(/\{(\w+)\}/g, (whole, name) =>
    String(values[name] ?? whole),
  )
