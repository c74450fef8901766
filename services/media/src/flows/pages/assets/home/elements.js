// Elements of the page at `/`, and the texts that it hands to its scripts.
export const $ = (id) => document.getElementById(id)
export const form = $('form')

const WORDS = JSON.parse(form.dataset.words)

/** Returns a text in the language of the page, with its names in braces replaced. */
export const text = (key, values = {}) => WORDS[key].replace(/\{(\w+)\}/g, (_, name) => values[name])

/** Makes an element with these properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}
