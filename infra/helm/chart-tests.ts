// What holds of both charts. Each value file is rendered once, and everything is asked of what came out.
import { copyFile, mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Environment } from '../../packages/common/src/config.ts'
import { chartFolder, helm, type KubernetesObject, noHelmHere, readYaml, render, valueFile } from './helm.ts'
import { schemaProblems } from './kubernetes-schema.ts'
import { brokenRules } from './pod-security.ts'
import { writeReadmeTable } from './readme-table.ts'
import {
  all,
  decode,
  environmentOf,
  find,
  hookOf,
  matches,
  podSpec,
  pods,
  podTemplate,
  references,
} from './rendered-objects.ts'
import { complaintsAbout, merge } from './value-refusals.ts'
import { type ChartFacts, isSecret, valuesSchema, variablesSchema } from './values-schema.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds, looked into
type Any = any

export interface ChartTests extends ChartFacts {
  /** Reads settings as the service does. */
  readConfig(environment: Environment): { warnings: string[] }
  /** Of the operator's own Secrets and of ConfigMaps that no chart makes, by variable. */
  elsewhere: Record<string, string>
  /** The values that `ci/minimal.yaml` has, in its words. */
  minimal: Any
  /** What a template refuses: values over the minimal ones, and what the sentence must say. */
  refused: [what: string, values: Any, sentence: RegExp][]
  /** What the schema refuses: path and value. */
  wrong: [path: string, value: unknown][]
}

/** What `stopOnSignal` allows a service, in the file where it is written. */
const SHUTDOWN = join(import.meta.dirname, '../../packages/common/src/shutdown.ts')

/** The longest that helm takes. */
const longRelease = (end: string) => `${'a-long-name-'.repeat(5).slice(0, 53 - end.length)}${end}`

/** What operators write and YAML, Go or a shell would like to read otherwise. */
const ODD = {
  quotes: `"double" 'single' \\back`,
  lines: 'first\nsecond: x\n# third',
  number: '0123',
  exponent: '1e3',
  yes: 'yes',
  null: 'null',
  template: '{{ .Token }} {{ fail "no" }}',
  date: '2026-01-01',
  unicode: 'käse 🧀',
  colon: ': - ? [a, {b',
}

export function chartTests(chart: ChartTests): void {
  describe.skipIf(noHelmHere)(`the chart ${chart.name}`, () => {
    const folder = chartFolder(chart.name)
    const rendered = new Map<string, KubernetesObject[]>()
    const everyRendering = () => [...rendered]

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

    test('helm finds nothing to complain about', async () => {
      await helm('lint', '--strict', '--quiet', folder, '-f', join(folder, 'ci/everything.yaml'))
    })

    test('every object is one that Kubernetes takes, without a member it does not know', async () => {
      const problems: string[] = []
      for (const [name, objects] of everyRendering()) {
        if (name.startsWith('long')) continue
        for (const object of objects) problems.push(...(await schemaProblems(object)).map((line) => `${name}: ${line}`))
      }
      expect(problems).toEqual([])
      const deployment = structuredClone(find(objectsOf('everything'), 'Deployment'))
      deployment.spec.template.spec.containers[0].livenessProb = {}
      deployment.spec.replicas = 'two'
      expect(await schemaProblems(deployment), 'the check sees what is wrong').toHaveLength(2)
    })

    test('every pod passes the restricted Pod Security Standard, on a read-only file system', () => {
      for (const [name, objects] of everyRendering()) {
        for (const [owner, spec] of pods(objects)) {
          expect(brokenRules(spec), `${name} ${owner}`).toEqual([])
          for (const container of spec.containers) expect(container.securityContext.readOnlyRootFilesystem).toBe(true)
        }
      }
    })

    test('no pod has a token of the cluster, or variables made of Services', () => {
      for (const [, objects] of everyRendering()) {
        for (const [, spec] of pods(objects)) {
          expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false })
        }
        for (const account of all(objects, 'ServiceAccount')) expect(account.automountServiceAccountToken).toBe(false)
      }
    })

    test('the service starts with the variables of every container, and knows all their names', () => {
      for (const [name, objects] of everyRendering()) {
        for (const [owner, spec] of pods(objects)) {
          if (owner.startsWith('Pod ')) continue
          for (const container of spec.containers) {
            const environment = environmentOf(container, objects, chart.elsewhere)
            expect(chart.readConfig(environment).warnings, `${name} ${owner}`).toEqual([])
          }
        }
      }
    })

    test('what a pod refers to is there, and for a hook before it runs', () => {
      for (const [name, objects] of everyRendering()) {
        const made = new Map(objects.map((object) => [`${object.kind} ${object.metadata.name}`, object]))
        const foreign = new Set(['ServiceAccount default', ...chartless(chart)])
        for (const object of objects) {
          const spec = podSpec(object)
          if (!spec) continue
          for (const reference of references(spec)) {
            if (foreign.has(reference)) continue
            const target = made.get(reference)
            expect(target, `${name}: ${object.metadata.name} needs ${reference}`).toBeDefined()
            const [needs, has] = [hookOf(object), hookOf(target as KubernetesObject)]
            if (needs.events.startsWith('test')) continue
            expect(has.events, `${name}: ${reference}`).toBe(needs.events)
            if (needs.events) expect(has.weight).toBeLessThan(needs.weight)
          }
        }
      }
    })

    test('the migration is done before anything else changes, and leaves nothing behind', () => {
      const objects = objectsOf('everything')
      const job = find(objects, 'Job')
      expect(job.spec.template.spec.containers[0].args).toEqual(['node', 'src/cli.ts', 'migrate'])
      const hooks = objects.filter((object) => hookOf(object).events === 'pre-install,pre-upgrade')
      expect(hooks.map(({ kind }) => kind).sort()).toEqual([
        'ConfigMap',
        'Job',
        'NetworkPolicy',
        'Secret',
        'ServiceAccount',
      ])
      for (const { metadata } of hooks) {
        expect(metadata.annotations?.['helm.sh/hook-delete-policy']).toBe('before-hook-creation,hook-succeeded')
      }
      for (const deployment of all(objects, 'Deployment'))
        expect(variable(deployment, 'MIGRATE_ON_START')).toBe('false')
      for (const [name, others] of everyRendering()) {
        if (all(others, 'Job').length > 0) continue
        for (const deployment of all(others, 'Deployment')) {
          expect(variable(deployment, 'MIGRATE_ON_START'), `${name}: without a Job`).toBe('true')
        }
      }
    })

    test('selectors match the labels of what they are for', () => {
      for (const [name, objects] of everyRendering()) {
        const templates = objects.flatMap((object) => (podTemplate(object) ? [podTemplate(object)] : []))
        const chosen = (labels: Any) => templates.filter((template) => matches(template.metadata.labels, labels))
        for (const object of objects) {
          const where = `${name} ${object.kind} ${object.metadata.name}`
          if (object.kind === 'Deployment') {
            expect(chosen(object.spec.selector.matchLabels), where).toEqual([object.spec.template])
          } else if (object.kind === 'Service') expect(chosen(object.spec.selector), where).toHaveLength(1)
          else if (object.kind === 'PodDisruptionBudget') {
            expect(chosen(object.spec.selector.matchLabels), where).toHaveLength(1)
          } else if (object.kind === 'NetworkPolicy') {
            expect(chosen(object.spec.podSelector.matchLabels), where).toHaveLength(1)
          }
        }
        for (const template of templates) {
          for (const { labelSelector } of template.spec.topologySpreadConstraints ?? []) {
            expect(chosen(labelSelector.matchLabels), name).toEqual([template])
          }
        }
      }
    })

    test('ports and objects that are named exist', () => {
      for (const [name, objects] of everyRendering()) {
        const templates = objects.flatMap((object) => (podTemplate(object) ? [podTemplate(object)] : []))
        const portsOf = (labels: Any): string[] =>
          templates
            .filter((template) => matches(template.metadata.labels, labels))
            .flatMap((template) => template.spec.containers.flatMap((container: Any) => container.ports ?? []))
            .map((port: Any) => port.name)
        for (const service of all(objects, 'Service')) {
          for (const port of service.spec.ports) expect(portsOf(service.spec.selector), name).toContain(port.targetPort)
        }
        for (const policy of all(objects, 'NetworkPolicy')) {
          const named = policy.spec.ingress.flatMap((rule: Any) => rule.ports ?? []).map((port: Any) => port.port)
          for (const port of named) expect(portsOf(policy.spec.podSelector.matchLabels), name).toContain(port)
        }
        for (const template of templates) {
          for (const container of template.spec.containers) {
            const own = (container.ports ?? []).map((port: Any) => port.name)
            for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
              if (container[probe]) expect(own).toContain(container[probe].httpGet.port)
            }
            const volumes = (template.spec.volumes ?? []).map((volume: Any) => volume.name)
            for (const mount of container.volumeMounts ?? []) expect(volumes).toContain(mount.name)
          }
        }
        for (const monitor of all(objects, 'ServiceMonitor')) {
          const services = all(objects, 'Service').filter((it) =>
            matches(it.metadata.labels, monitor.spec.selector.matchLabels),
          )
          expect(services).toHaveLength(all(objects, 'Deployment').length)
          for (const service of services) expect(service.spec.ports[0].name).toBe(monitor.spec.endpoints[0].port)
        }
        for (const ingress of all(objects, 'Ingress')) {
          for (const { http } of ingress.spec.rules) {
            for (const { backend } of http.paths) {
              const service = all(objects, 'Service').find((it) => it.metadata.name === backend.service.name)
              expect(service?.spec.ports[0].name).toBe(backend.service.port.name)
            }
          }
        }
      }
    })

    test('who is scaled has no number of pods of its own', () => {
      let seen = 0
      for (const [, objects] of everyRendering()) {
        const scaled = [...all(objects, 'HorizontalPodAutoscaler'), ...all(objects, 'ScaledObject')]
        const targets = scaled.map(({ spec }) => spec.scaleTargetRef.name)
        expect(new Set(targets).size).toBe(targets.length)
        for (const { metadata, spec } of all(objects, 'Deployment')) {
          expect(spec.replicas === undefined).toBe(targets.includes(metadata.name))
        }
        seen += targets.length
      }
      expect(seen).toBeGreaterThan(0)
    })

    test('a pod has the time to stop that the service takes', async () => {
      const [, ms] = /STOP_WITHIN_MS = ([\d_]+)/.exec(await readFile(SHUTDOWN, 'utf8')) ?? []
      const stopSeconds = Number(ms?.replaceAll('_', '')) / 1000
      expect(stopSeconds).toBeGreaterThan(0)
      for (const deployment of all(objectsOf('everything'), 'Deployment')) {
        const { terminationGracePeriodSeconds, containers } = deployment.spec.template.spec
        const sleep = containers[0].lifecycle?.preStop.sleep.seconds ?? 0
        expect(terminationGracePeriodSeconds).toBeGreaterThan(sleep + stopSeconds)
      }
    })

    test('names are short enough for labels, however long the release is called', () => {
      for (const [name, objects] of everyRendering()) {
        for (const { kind, metadata } of objects) {
          expect(metadata.name, `${name} ${kind}`).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/)
          for (const [label, value] of Object.entries(metadata.labels ?? {})) {
            expect(value, label).toMatch(/^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/)
          }
        }
      }
    })

    test('two releases in one namespace do not collide, nor does one choose the pods of the other', () => {
      const [one, two] = [objectsOf('long-one'), objectsOf('long-two')]
      const names = (objects: KubernetesObject[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
      expect(names(one).filter((name) => names(two).includes(name))).toEqual([])
      expect(new Set(names(one)).size).toBe(one.length)
      const selectors = one.flatMap(({ spec }) => spec?.selector?.matchLabels ?? spec?.podSelector?.matchLabels ?? [])
      const templates = two.flatMap((object) => podTemplate(object)?.metadata.labels ?? [])
      expect(templates.filter((labels) => selectors.some((selector) => matches(labels, selector)))).toEqual([])
    })

    test('a secret is in no object but a Secret, and only where none is named', () => {
      for (const [name, objects] of everyRendering()) {
        for (const { data, ...object } of objects.filter(({ kind }) => kind === 'Secret')) {
          expect(JSON.stringify(object)).not.toContain('hunter2')
          expect(Object.keys(data), name).not.toEqual([])
        }
        expect(JSON.stringify(objects.filter(({ kind }) => kind !== 'Secret')), name).not.toContain('hunter2')
        for (const { data } of all(objects, 'ConfigMap')) expect(Object.keys(data).filter(isSecretName)).toEqual([])
      }
      expect(all(objectsOf('minimal'), 'Secret')).toEqual([])
    })

    test('odd values arrive as they are', async () => {
      const config = {
        OTEL_LINES: 'a\u2028b\tcd',
        [`${chart.prefix}LOG_FILE`]: ODD.lines,
        OTEL_RESOURCE_ATTRIBUTES: ODD.template,
        TZ: ODD.number,
      }
      const odd = {
        config: { ...chart.minimal.config, ...config, OTEL_BIG: 1_234_567_890_123, OTEL_SMALL: 0.1, OTEL_NO: false },
        extraEnv: Object.entries(ODD).map(([name, value]) => ({ name: `ODD_${name}`, value })),
        podAnnotations: ODD,
        commonAnnotations: { odd: ODD.quotes },
        args: Object.values(ODD),
        image: { tag: '0123' },
        ingress: {
          enabled: true,
          hosts: [{ host: '*.example.com', paths: [{ path: `/${ODD.colon}` }] }],
          tls: [{ secretName: 'true', hosts: [] }],
        },
        secrets: { [`${chart.prefix}DATABASE_URL`]: ODD.quotes, [`${chart.prefix}ENCRYPTION_KEY`]: ODD.lines },
        existingSecret: '',
        extraEnvFrom: [{ secretRef: { name: 'more' } }],
      }
      const objects = await render(chart.name, 'a.b', join(folder, 'ci/minimal.yaml'), await valueFile(odd))
      const deployment = find(objects, 'Deployment')
      const { annotations } = deployment.spec.template.metadata
      const [container] = deployment.spec.template.spec.containers
      expect(find(objects, 'ConfigMap').data).toMatchObject({
        ...config,
        ...{ OTEL_BIG: '1234567890123', OTEL_SMALL: '0.1', OTEL_NO: 'false' },
      })
      expect(annotations).toMatchObject({ ...ODD, odd: ODD.quotes })
      expect(Object.fromEntries(container.env.map((it: Any) => [it.name, it.value]))).toMatchObject(
        Object.fromEntries(odd.extraEnv.map(({ name, value }) => [name, value])),
      )
      expect(container.args).toEqual(Object.values(ODD))
      expect(container.image).toBe(`${chart.name}:0123`)
      expect(find(objects, 'Ingress').spec.rules[0].http.paths[0].path).toBe(`/${ODD.colon}`)
      const secret = Object.entries(find(objects, 'Secret').data).map(([name, value]) => [
        name,
        decode(value as string),
      ])
      expect(Object.fromEntries(secret)).toMatchObject(odd.secrets)
      expect(deployment.metadata.name, 'a name of a Service has no dots').toMatch(/^a-b-[a-z]+-[0-9a-f]{8}$/)
      for (const object of objects) expect(await schemaProblems(object)).toEqual([])
    })

    test('names that YAML would read as something else stay names', async () => {
      const names = {
        ...{ nameOverride: '0x1f', fullnameOverride: 'true', existingSecret: '123', priorityClassName: 'null' },
        ...{ serviceAccount: { create: false, name: '1e3' }, imagePullSecrets: ['1', { name: '2' }] },
        ...{ commonLabels: { a: 'yes', b: '1' }, podLabels: { 'app.kubernetes.io/instance': 'other' } },
        ...{ metrics: { enabled: true, serviceMonitor: { enabled: true, namespace: '123' } } },
        updateStrategy: { type: 'Recreate' },
      }
      const objects = await render(chart.name, '1e3', join(folder, 'ci/minimal.yaml'), await valueFile(names))
      for (const object of objects) expect(await schemaProblems(object)).toEqual([])
      const { strategy, template } = find(objects, 'Deployment').spec
      expect(template.metadata.labels['app.kubernetes.io/instance']).toBe('1e3')
      expect(strategy).toEqual({ type: 'Recreate' })
      await expect(render(chart.name, '1e3', join(folder, 'ci/minimal.yaml'))).rejects.toThrow(
        /fullnameOverride is required/,
      )
    })

    test('a changed setting rolls the pods, and so does a changed secret', async () => {
      const sums = (objects: KubernetesObject[]) => find(objects, 'Deployment').spec.template.metadata.annotations
      const changes = { config: { TZ: 'UTC' }, secrets: { [`${chart.prefix}ENCRYPTION_KEY`]: 'another-of-sixteen' } }
      const changed = await render(chart.name, 'rel', join(folder, 'ci/secrets.yaml'), await valueFile(changes))
      const [before, after] = [sums(objectsOf('secrets')), sums(changed)]
      expect(after['checksum/config']).not.toBe(before['checksum/config'])
      expect(after['checksum/secret']).not.toBe(before['checksum/secret'])
    })

    test.each(chart.refused)(
      '%s stops the rendering, and says which value to change',
      async (_what, values, sentence) => {
        const rendering = render(chart.name, 'rel', await valueFile(merge(chart.minimal, values)))
        await expect(rendering).rejects.toThrow(sentence)
      },
    )

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

      test('is what the sources make it: `node infra/helm/update.ts` writes it', async () => {
        const written = JSON.parse(await readFile(join(folder, 'values.schema.json'), 'utf8'))
        expect(written).toEqual(JSON.parse(JSON.stringify(valuesSchema(chart))))
      })

      test('has a value for every member that it knows', async () => {
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

      test('knows no secret among plain settings', () => {
        const { config } = variablesSchema(chart) as Any
        expect(
          Object.keys(config.properties).filter((name) => /SECRET|PASS$|DATABASE_URL|API_KEY|JWT_KEYS/.test(name)),
        ).toEqual([])
      })
    })

    test('the table of the README is made of values.yaml: `node infra/helm/update.ts` writes it', async () => {
      const copy = join(await mkdtemp(join(tmpdir(), 'readme-')), 'README.md')
      await copyFile(join(folder, 'README.md'), copy)
      writeReadmeTable(join(folder, 'values.yaml'), copy)
      expect(await readFile(copy, 'utf8')).toBe(await readFile(join(folder, 'README.md'), 'utf8'))
    })

    test('the chart installs the version that the service has', async () => {
      const service = join(import.meta.dirname, `../../services/${chart.name}/package.json`)
      const { version } = JSON.parse(await readFile(service, 'utf8'))
      expect(await readYaml(join(folder, 'Chart.yaml'))).toMatchObject({ name: chart.name, appVersion: version })
    })

    function objectsOf(name: string): KubernetesObject[] {
      const objects = rendered.get(name)
      if (!objects) throw new Error(`no rendering called ${name}`)
      return objects
    }

    const isSecretName = (name: string) => name.startsWith(chart.prefix) && isSecret(name.slice(chart.prefix.length))

    function variable(deployment: KubernetesObject, name: string): string | undefined {
      const { env } = deployment.spec.template.spec.containers[0]
      return env.find((it: Any) => it.name === chart.prefix + name)?.value
    }
  })
}

/** What the value files of ci/ take for granted. */
const chartless = ({ name }: ChartFacts) => [
  `Secret ${name}-secrets`,
  ...[
    'Secret postgres-app',
    'Secret sites',
    'ConfigMap mail-templates',
    'ConfigMap ytdlp',
    'PersistentVolumeClaim nfs-clips',
  ],
]
