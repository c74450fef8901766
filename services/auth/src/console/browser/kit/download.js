// Files for the reader, made of an answer. No other host and no further request takes part.

/** @param {string} name @param {string} text @param {string} [type] */
export function download(name, text, type = 'application/json') {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const anchor = document.createElement('a')
  anchor.href = url
  anchor.download = name
  anchor.click()
  // A browser may read it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
