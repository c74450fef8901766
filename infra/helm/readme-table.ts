import { runReadmeGenerator } from '@bitnami/readme-generator-for-helm'

/** Replaces the tables under "Parameters" by the comments of values.yaml; throws for a value without one. */
export function writeReadmeTable(values: string, readme: string): void {
  const say = console.log
  const said: string[] = []
  console.log = (line) => said.push(String(line))
  try {
    runReadmeGenerator({ values, readme })
  } catch (cause) {
    // The generator prints its errors among other lines.
    throw new Error(said.filter((line) => line.startsWith('ERROR')).join('\n'), { cause })
  } finally {
    console.log = say
  }
}
