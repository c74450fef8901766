// Tests of each chart's values.schema.json: generated from the sources, complete, and strict.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { ChartFacts } from './chart-facts.ts'
import { chartFolder, helm, readYaml, valueFile } from './helm.ts'
import { valuesSchema } from './values-schema.ts'
import { variablesSchema } from './variables-schema.ts'

// biome-ignore lint/suspicious/noExplicitAny: values of any form
type Any = any

export interface SchemaTests {
  wrong: [path: string, value: unknown][]
}

export function schemaTests(chart: ChartFacts & SchemaTests): void {
  const folder = chartFolder(chart.name)

  describe('the schema', () => {
    let complaints = ''
    beforeAll(async () => {
      complaints = await complaintsAbout(chart.name, chart.wrong)
    })

    test.each(chart.wrong)('refuses %s: %j', (path) => {
      const at = path.slice(0, path.lastIndexOf('/'))
      const name = path.slice(at.length + 1)
      const lines = complaints.split('\n')
      const isNamed = (line: string) =>
        line.includes(`'${at}':`) && line.includes(`'${name}'`) && /additional|missing/.test(line)
      const isBelow = (line: string) => line.includes(`'${path}'`) || line.includes(`'${path}/`)
      expect(
        lines.some((line) => isBelow(line) || isNamed(line)),
        complaints,
      ).toBe(true)
    })

    test('is generated from the sources: `node infra/helm/update.ts` writes it', async () => {
      const written = JSON.parse(await readFile(join(folder, 'values.schema.json'), 'utf8'))
      expect(written).toEqual(JSON.parse(JSON.stringify(valuesSchema(chart))))
    })

    test('knows no member without a value in values.yaml', async () => {
      const values = await readYaml(join(folder, 'values.yaml'))
      const schema: Any = valuesSchema(chart)
      const missing = (of: Any, value: Any, path: string): string[] =>
        Object.entries(of.properties ?? {}).flatMap(([name, member]: [string, Any]) => {
          if (value?.[name] === undefined) return [`${path}.${name}`]
          return member.type === 'object' ? missing(member, value[name], `${path}.${name}`) : []
        })
      const { config: _, secrets: __, global: ___, ...properties } = schema.properties
      expect(missing({ properties }, values, '')).toEqual([])
    })

    test('has no secret among plain settings', () => {
      const { config } = variablesSchema(chart) as Any
      expect(
        Object.keys(config.properties).filter((name) => /SECRET|PASS$|DATABASE_URL|API_KEY|JWT_KEYS/.test(name)),
      ).toEqual([])
    })
  })
}

/** Collects helm's errors for these values, with as many values in a run as have different paths. */
async function complaintsAbout(chart: string, wrong: [string, unknown][]): Promise<string> {
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
