// Writes the generated parts of docs/reference: `node docs/reference/update.ts`, after a change of a route, an error, a
// variable or a command. Works for the services that are there. Tests fail while a page is older than the code.
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Generated, renderPages } from './generated.ts'

for (const service of ['auth', 'media']) {
  const needed = [`../../services/${service}/package.json`, `${service}.ts`]
  if (!needed.every((path) => existsSync(join(import.meta.dirname, path)))) continue
  const { generatedParts }: { generatedParts: () => Promise<Generated[]> } = await import(`./${service}.ts`)
  for (const [path, { before, after }] of await renderPages(await generatedParts())) {
    if (before !== after) await writeFile(path, after)
  }
}
