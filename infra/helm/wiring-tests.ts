// Tests of references between the objects of both charts: names, selectors, and the order of hooks.
import { expect, test } from 'vitest'
import type { ChartFacts } from './chart-facts.ts'
import type { KubernetesObject } from './helm.ts'
import {
  all,
  find,
  hookOf,
  matches,
  objectsOf,
  podSpec,
  podTemplate,
  type Renderings,
  references,
} from './rendered-objects.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any

export function wiringTests(chart: ChartFacts, rendered: Renderings): void {
  const variable = (deployment: KubernetesObject, name: string): string | undefined => {
    const { env } = deployment.spec.template.spec.containers[0]
    return env.find((it: Any) => it.name === chart.prefix + name)?.value
  }

  test('objects that a pod refers to exist, for a hook before it runs', () => {
    for (const [name, objects] of rendered) {
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

  test('the migration runs before all other changes and leaves nothing behind', () => {
    const objects = objectsOf(rendered, 'everything')
    const job = find(objects, 'Job')
    expect(job.spec.template.spec.containers[0].args).toEqual(['node', 'dist/cli.js', 'migrate'])
    const hooks = objects.filter((object) => hookOf(object).events === 'pre-install,pre-upgrade')
    const kinds = hooks.map(({ kind }) => kind).sort()
    expect(kinds).toEqual(['ConfigMap', 'Job', 'NetworkPolicy', 'Secret', 'ServiceAccount'])
    for (const { metadata } of hooks) {
      expect(metadata.annotations?.['helm.sh/hook-delete-policy']).toBe('before-hook-creation,hook-succeeded')
    }
    for (const deployment of all(objects, 'Deployment')) expect(variable(deployment, 'MIGRATE_ON_START')).toBe('false')
    for (const [name, others] of rendered) {
      if (all(others, 'Job').length > 0) continue
      for (const deployment of all(others, 'Deployment')) {
        expect(variable(deployment, 'MIGRATE_ON_START'), `${name}: without a Job`).toBe('true')
      }
    }
  })

  test('selectors match the labels of their targets', () => {
    for (const [name, objects] of rendered) {
      const templates = objects.flatMap((object) => (podTemplate(object) ? [podTemplate(object)] : []))
      const chosen = (labels: Any) => templates.filter((template) => matches(template.metadata.labels, labels))
      for (const { kind, metadata, spec } of objects) {
        const where = `${name} ${kind} ${metadata.name}`
        if (kind === 'Deployment') expect(chosen(spec.selector.matchLabels), where).toEqual([spec.template])
        if (kind === 'Service') expect(chosen(spec.selector), where).toHaveLength(1)
        if (kind === 'PodDisruptionBudget') expect(chosen(spec.selector.matchLabels), where).toHaveLength(1)
        if (kind === 'NetworkPolicy') expect(chosen(spec.podSelector.matchLabels), where).toHaveLength(1)
      }
      for (const template of templates) {
        for (const { labelSelector } of template.spec.topologySpreadConstraints ?? []) {
          expect(chosen(labelSelector.matchLabels), name).toEqual([template])
        }
      }
    }
  })

  test('named ports and objects exist', () => {
    for (const [name, objects] of rendered) {
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

  test('names fit into labels, however long the release name', () => {
    for (const [name, objects] of rendered) {
      for (const { kind, metadata } of objects) {
        expect(metadata.name, `${name} ${kind}`).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/)
        for (const [label, value] of Object.entries(metadata.labels ?? {})) {
          expect(value, label).toMatch(/^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/)
        }
      }
    }
  })

  test('two releases in one namespace neither collide nor select pods of each other', () => {
    const [one, two] = [objectsOf(rendered, 'long-one'), objectsOf(rendered, 'long-two')]
    const names = (objects: KubernetesObject[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names(one).filter((name) => names(two).includes(name))).toEqual([])
    expect(new Set(names(one)).size).toBe(one.length)
    const selectors = one.flatMap(({ spec }) => spec?.selector?.matchLabels ?? spec?.podSelector?.matchLabels ?? [])
    const templates = two.flatMap((object) => podTemplate(object)?.metadata.labels ?? [])
    expect(templates.filter((labels) => selectors.some((selector) => matches(labels, selector)))).toEqual([])
  })
}

/** Objects that the value files of ci/ assume. */
const chartless = ({ name }: ChartFacts) => [
  ...[`Secret ${name}-secrets`, 'Secret postgres-app', 'Secret sites'],
  ...['ConfigMap mail-templates', 'ConfigMap ytdlp', 'PersistentVolumeClaim nfs-clips'],
]
