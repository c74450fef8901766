// Writes what is made of other files: each chart's values.schema.json, and the table of its README. Run it with `node` after a
// change of values.yaml, of what values-schema.ts is made of or of a service's variables; the tests say when that was forgotten.
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChartFacts } from './chart-facts.ts'
import { writeReadmeTable } from './readme-table.ts'
import { valuesSchema } from './values-schema.ts'

for (const name of ['auth', 'media']) {
  const folder = join(import.meta.dirname, name)
  if (!existsSync(folder)) continue
  const { chart }: { chart: ChartFacts } = await import(`./${name}-chart.ts`)
  const schema = JSON.stringify(valuesSchema(chart), null, 2)
  // A line each for variables, of which there are hundreds.
  const short = schema.replace(/\{\s+("\$ref": "[^"]+")\s+\}/g, '{ $1 }')
  await writeFile(join(folder, 'values.schema.json'), `${short}\n`)
  writeReadmeTable(join(folder, 'values.yaml'), join(folder, 'README.md'))
}
