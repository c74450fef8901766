// Recalculates SCALING.md after a benchmark or a changed assumption. `node infra/scaling/update.ts users=5e6` writes
// nothing and prints the tables with that value.
import { readFile, writeFile } from 'node:fs/promises'
import { calculate, readResults, SHEET } from './sheet.ts'

const given = Object.fromEntries(
  process.argv.slice(2).map((argument) => {
    const [name, value] = argument.split('=')
    return [name, Number(value)]
  }),
)
const text = calculate(await readFile(SHEET, 'utf8'), await readResults(), given)
const tables = text.split('\n').filter((line) => /^[|#]/.test(line))
if (Object.keys(given).length === 0) await writeFile(SHEET, text)
else console.log(tables.join('\n'))
