// Tests of an operator's values in both charts: they arrive unchanged in the right object, or are refused.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Environment } from '../../packages/common/src/config/variables.ts'
import type { ChartFacts } from './chart-facts.ts'
import { chartFolder, type KubernetesObject, render, valueFile } from './helm.ts'
import { schemaProblems } from './kubernetes-schema.ts'
import { all, decode, environmentOf, find, objectsOf, pods, type Renderings } from './rendered-objects.ts'
import { isSecret } from './variables-schema.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any

export interface ValueTests {
  readConfig(environment: Environment): { warnings: string[] }
  /** Variables from Secrets and ConfigMaps outside the chart. */
  elsewhere: Record<string, string>
  /** Values of `ci/minimal.yaml`. */
  minimal: Any
  /** Values, over the minimal ones, that a template refuses, and the error. */
  refused: Refused[]
}

type Refused = [what: string, values: Any, sentence: RegExp]

const REFUSED_BY_BOTH: Refused[] = [
  ['an Ingress without hosts', { ingress: { enabled: true } }, /ingress\.hosts is required with ingress\.enabled/],
  [
    'a ServiceMonitor without metrics',
    { metrics: { serviceMonitor: { enabled: true } } },
    /metrics\.serviceMonitor\.enabled needs metrics\.enabled/,
  ],
  [
    'fewest pods above most',
    { autoscaling: { enabled: true, minReplicas: 5, maxReplicas: 4 } },
    /autoscaling\.minReplicas is above autoscaling\.maxReplicas/,
  ],
  [
    'a drain longer than the grace period',
    { preStopSeconds: 36 },
    /preStopSeconds is above terminationGracePeriodSeconds/,
  ],
  [
    'CPU scaling without a CPU request',
    { autoscaling: { enabled: true }, resources: { requests: { cpu: null } } },
    /autoscaling\.targetCPUUtilizationPercentage needs resources\.requests\.cpu/,
  ],
  [
    'memory scaling without a memory request',
    {
      autoscaling: { enabled: true, targetMemoryUtilizationPercentage: 80 },
      resources: { requests: { memory: null }, limits: null },
    },
    /autoscaling\.targetMemoryUtilizationPercentage needs resources\.requests\.memory/,
  ],
  [
    'scaling without a target',
    { autoscaling: { enabled: true, targetCPUUtilizationPercentage: 0 } },
    /autoscaling\.targetCPUUtilizationPercentage and autoscaling\.targetMemoryUtilizationPercentage are both 0/,
  ],
]

/** Values that YAML, Go or a shell could interpret. */
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

export function valueTests(chart: ChartFacts & ValueTests, rendered: Renderings): void {
  const folder = chartFolder(chart.name)
  const isSecretName = (name: string) => name.startsWith(chart.prefix) && isSecret(name.slice(chart.prefix.length))

  test('the service accepts the variables of every container', () => {
    for (const [name, objects] of rendered) {
      for (const [owner, spec] of pods(objects)) {
        if (owner.startsWith('Pod ')) continue
        for (const container of spec.containers) {
          const environment = environmentOf(container, objects, chart.elsewhere)
          expect(chart.readConfig(environment).warnings, `${name} ${owner}`).toEqual([])
        }
      }
    }
  })

  test('a secret is in a Secret alone, and only where no existing one is named', () => {
    for (const [name, objects] of rendered) {
      for (const { data, ...object } of objects.filter(({ kind }) => kind === 'Secret')) {
        expect(JSON.stringify(object)).not.toContain('hunter2')
        expect(Object.keys(data), name).not.toEqual([])
      }
      expect(JSON.stringify(objects.filter(({ kind }) => kind !== 'Secret')), name).not.toContain('hunter2')
      for (const { data } of all(objects, 'ConfigMap')) expect(Object.keys(data).filter(isSecretName)).toEqual([])
    }
    expect(all(objectsOf(rendered, 'minimal'), 'Secret')).toEqual([])
  })

  test('odd values arrive unchanged', async () => {
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
    const secret = Object.entries(find(objects, 'Secret').data).map(([name, value]) => [name, decode(value as string)])
    expect(Object.fromEntries(secret)).toMatchObject(odd.secrets)
    expect(deployment.metadata.name, 'a name of a Service has no dots').toMatch(/^a-b-[a-z]+-[0-9a-f]{8}$/)
    for (const object of objects) expect(await schemaProblems(object)).toEqual([])
  })

  test('names that YAML could interpret stay names', async () => {
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

  test('a changed setting or secret rolls the pods', async () => {
    const sums = (objects: KubernetesObject[]) => find(objects, 'Deployment').spec.template.metadata.annotations
    const changes = { config: { TZ: 'UTC' }, secrets: { [`${chart.prefix}ENCRYPTION_KEY`]: 'another-of-sixteen' } }
    const changed = await render(chart.name, 'rel', join(folder, 'ci/secrets.yaml'), await valueFile(changes))
    const [before, after] = [sums(objectsOf(rendered, 'secrets')), sums(changed)]
    expect(after['checksum/config']).not.toBe(before['checksum/config'])
    expect(after['checksum/secret']).not.toBe(before['checksum/secret'])
  })

  test.each([...REFUSED_BY_BOTH, ...chart.refused])(
    '%s stops the rendering, and says which value to change',
    async (_what, values, sentence) => {
      const rendering = render(chart.name, 'rel', await valueFile(merge(chart.minimal, values)))
      await expect(rendering).rejects.toThrow(sentence)
    },
  )
}

/** Merges deeply, as helm merges value files; null removes. */
function merge(below: Any, above: Any): Any {
  if (typeof below !== 'object' || typeof above !== 'object' || !below || !above || Array.isArray(above)) return above
  return {
    ...below,
    ...Object.fromEntries(Object.entries(above).map(([name, value]) => [name, merge(below[name], value)])),
  }
}
