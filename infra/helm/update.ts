// Generates each chart's values.schema.json and the table of its README. Run it after changes of values.yaml, the
// schema's sources or a service's variables; tests fail until then.
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
  // One line per variable: there are hundreds.
  const short = schema.replace(/\{\s+("\$ref": "[^"]+")\s+\}/g, '{ $1 }')
  await writeFile(join(folder, 'values.schema.json'), `${short}\n`)
  writeReadmeTable(join(folder, 'values.yaml'), join(folder, 'README.md'))
}
