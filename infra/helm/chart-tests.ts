// Tests of both charts as a whole. Each value file is rendered once, and all tests read the result. By subject:
// pod-tests.ts, wiring-tests.ts (references), value-tests.ts, schema-tests.ts.
import { copyFile, mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { ChartFacts } from './chart-facts.ts'
import { chartFolder, helm, type KubernetesObject, readYaml, render } from './helm.ts'
import { schemaProblems } from './kubernetes-schema.ts'
import { podTests } from './pod-tests.ts'
import { writeReadmeTable } from './readme-table.ts'
import { find, objectsOf } from './rendered-objects.ts'
import { type SchemaTests, schemaTests } from './schema-tests.ts'
import { type ValueTests, valueTests } from './value-tests.ts'
import { wiringTests } from './wiring-tests.ts'

/** Longest release name that helm accepts. */
const longRelease = (end: string) => `${'a-long-name-'.repeat(5).slice(0, 53 - end.length)}${end}`

export function chartTests(chart: ChartFacts & ValueTests & SchemaTests): void {
  describe(`the chart ${chart.name}`, { tags: 'helm' }, () => {
    const folder = chartFolder(chart.name)
    const rendered = new Map<string, KubernetesObject[]>()

    beforeAll(async () => {
      const names = (await readdir(join(folder, 'ci'))).map((file) => basename(file, '.yaml'))
      const jobs: [string, string, string][] = names.map((name) => [name, 'rel', name])
      for (const end of ['-one', '-two']) jobs.push([`long${end}`, longRelease(end), 'everything'])
      await Promise.all(
        jobs.map(async ([key, release, file]) => {
          rendered.set(key, await render(chart.name, release, join(folder, `ci/${file}.yaml`)))
        }),
      )
    })

    test('helm lint passes', async () => {
      await helm('lint', '--strict', '--quiet', folder, '-f', join(folder, 'ci/everything.yaml'))
    })

    test('every object is valid in Kubernetes, without unknown members', async () => {
      const problems: string[] = []
      for (const [name, objects] of rendered) {
        if (name.startsWith('long')) continue
        for (const object of objects) problems.push(...(await schemaProblems(object)).map((line) => `${name}: ${line}`))
      }
      expect(problems).toEqual([])
      const deployment = structuredClone(find(objectsOf(rendered, 'everything'), 'Deployment'))
      deployment.spec.template.spec.containers[0].livenessProb = {}
      deployment.spec.replicas = 'two'
      expect(await schemaProblems(deployment), 'the check sees what is wrong').toHaveLength(2)
    })

    test('the table of the README is generated from values.yaml: `node infra/helm/update.ts` writes it', async () => {
      const copy = join(await mkdtemp(join(tmpdir(), 'readme-')), 'README.md')
      await copyFile(join(folder, 'README.md'), copy)
      writeReadmeTable(join(folder, 'values.yaml'), copy)
      expect(await readFile(copy, 'utf8')).toBe(await readFile(join(folder, 'README.md'), 'utf8'))
    })

    test('the chart installs the version of the service', async () => {
      const service = join(import.meta.dirname, `../../services/${chart.name}/package.json`)
      const { version } = JSON.parse(await readFile(service, 'utf8'))
      expect(await readYaml(join(folder, 'Chart.yaml'))).toMatchObject({ name: chart.name, appVersion: version })
    })

    podTests(rendered)
    wiringTests(chart, rendered)
    valueTests(chart, rendered)
    schemaTests(chart)
  })
}
