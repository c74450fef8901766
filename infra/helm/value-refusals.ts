// What helm says of values that it should refuse.
import { chartFolder, helm, valueFile } from './helm.ts'

// biome-ignore lint/suspicious/noExplicitAny: values of any form
type Any = any

/** Deeply, as helm merges value files; null removes. */
export function merge(below: Any, above: Any): Any {
  if (typeof below !== 'object' || typeof above !== 'object' || !below || !above || Array.isArray(above)) return above
  return {
    ...below,
    ...Object.fromEntries(Object.entries(above).map(([name, value]) => [name, merge(below[name], value)])),
  }
}

/** All that helm says about these values, in as few runs as there are values for one path, since it says all at once. */
export async function complaintsAbout(chart: string, wrong: [string, unknown][]): Promise<string> {
  const runs: { paths: string[]; values: Any }[] = []
  for (const [path, value] of wrong) {
    const collides = (other: string) => `${other}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${other}/`)
    const run = runs.find(({ paths }) => !paths.some(collides)) ?? { paths: [], values: {} }
    if (run.paths.length === 0) runs.push(run)
    run.paths.push(path)
    const names = path.slice(1).split('/')
    const last = names.pop() as string
    let at = run.values
    for (const name of names) at = at[name] ??= {}
    at[last] = value
  }
  const texts = await Promise.all(
    runs.map(async ({ values }) =>
      helm('template', 'rel', chartFolder(chart), '-f', await valueFile(values)).then(
        () => '',
        (error: Error) => error.message,
      ),
    ),
  )
  return texts.join('\n')
}
