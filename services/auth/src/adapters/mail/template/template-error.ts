/** Template that cannot be used. The text names the line and quotes only the template. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
}

/** `at`: offset in the source. */
export function syntaxError(source: string, at: number, problem: string): TemplateError {
  let line = 1
  for (let i = source.indexOf('\n'); i !== -1 && i < at; i = source.indexOf('\n', i + 1)) line++
  return new TemplateError(`line ${line}: ${problem}`)
}
