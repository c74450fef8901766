import type { Environment } from '../../packages/common/src/config/variables.ts'
import type { KubernetesObject } from './helm.ts'

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any

export type Renderings = ReadonlyMap<string, KubernetesObject[]>

export function objectsOf(rendered: Renderings, name: string): KubernetesObject[] {
  const objects = rendered.get(name)
  if (!objects) throw new Error(`no rendering called ${name}`)
  return objects
}

export const all = (objects: KubernetesObject[], kind: string) => objects.filter((object) => object.kind === kind)

/** Finds the first object of the release, or of its hooks. */
export function find(objects: KubernetesObject[], kind: string): KubernetesObject {
  const found = all(objects, kind).sort((a, b) => hookOf(a).events.length - hookOf(b).events.length)[0]
  if (!found) throw new Error(`no ${kind}`)
  return found
}

export const decode = (text: string) => Buffer.from(text, 'base64').toString()

export function podTemplate(object: KubernetesObject): Any {
  if (object.kind === 'Pod') return object
  return ['Deployment', 'Job'].includes(object.kind) ? object.spec.template : undefined
}

export const podSpec = (object: KubernetesObject): Any => podTemplate(object)?.spec

export const pods = (objects: KubernetesObject[]) =>
  objects
    .filter((object) => podSpec(object))
    .map((object): [string, Any] => [`${object.kind} ${object.metadata.name}`, podSpec(object)])

export const matches = (labels: Record<string, string> = {}, selector: Record<string, string> = {}) =>
  Object.keys(selector).length > 0 && Object.entries(selector).every(([name, value]) => labels[name] === value)

export function hookOf({ metadata }: KubernetesObject): { events: string; weight: number } {
  const { annotations = {} } = metadata
  return { events: annotations['helm.sh/hook'] ?? '', weight: Number(annotations['helm.sh/hook-weight'] ?? 0) }
}

/** Lists the objects that a pod needs to start, as `Kind name`. */
export function references(spec: Any): string[] {
  const isNeeded = (reference: Any) => reference && reference.optional !== true
  const sources = spec.containers.flatMap((container: Any) => [
    ...(container.envFrom ?? []),
    ...(container.env ?? []).map(({ valueFrom = {} }: Any) => ({
      secretRef: valueFrom.secretKeyRef,
      configMapRef: valueFrom.configMapKeyRef,
    })),
  ])
  return [
    ...(spec.serviceAccountName ? [`ServiceAccount ${spec.serviceAccountName}`] : []),
    ...sources.flatMap(({ configMapRef, secretRef }: Any) => [
      ...(isNeeded(configMapRef) ? [`ConfigMap ${configMapRef.name}`] : []),
      ...(isNeeded(secretRef) ? [`Secret ${secretRef.name}`] : []),
    ]),
    ...(spec.volumes ?? []).flatMap(({ configMap, secret, persistentVolumeClaim }: Any) => [
      ...(configMap ? [`ConfigMap ${configMap.name}`] : []),
      ...(secret ? [`Secret ${secret.secretName}`] : []),
      ...(persistentVolumeClaim ? [`PersistentVolumeClaim ${persistentVolumeClaim.claimName}`] : []),
    ]),
  ]
}

export function environmentOf(
  container: Any,
  objects: KubernetesObject[],
  elsewhere: Record<string, string>,
): Environment {
  const environment: Environment = {}
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    const reference = configMapRef ?? secretRef
    const source = objects.find(
      ({ kind, metadata }) => kind === (configMapRef ? 'ConfigMap' : 'Secret') && metadata.name === reference.name,
    )
    if (!source && !reference.optional) Object.assign(environment, elsewhere)
    for (const [name, value] of Object.entries(source?.data ?? {})) {
      environment[name] = configMapRef ? (value as string) : decode(value as string)
    }
  }
  for (const { name, value, valueFrom } of container.env ?? []) environment[name] = valueFrom ? elsewhere[name] : value
  return environment
}
