import { runReadmeGenerator } from '@bitnami/readme-generator-for-helm'

/** Replaces the tables under "Parameters" by what the comments of values.yaml say; throws where a value has none. */
export function writeReadmeTable(values: string, readme: string): void {
  const say = console.log
  const said: string[] = []
  console.log = (line) => said.push(String(line))
  try {
    runReadmeGenerator({ values, readme })
  } catch (cause) {
    // What is wrong it only prints, among much else.
    throw new Error(said.filter((line) => line.startsWith('ERROR')).join('\n'), { cause })
  } finally {
    console.log = say
  }
}
