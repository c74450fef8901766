// Builders of JSON schemas, and shared definitions of values: variables by type, names and numbers of Kubernetes, and
// the Kubernetes objects that charts pass on.

export type Schema = Record<string, unknown>

/** Object with exactly these members. */
export const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...more,
})

export const list = (items: Schema): Schema => ({ type: 'array', items })
export const oneOf = (...values: unknown[]): Schema => ({ enum: values })
export const matching = (pattern: string): Schema => ({ type: 'string', pattern })
export const ref = (name: string): Schema => ({ $ref: `#/definitions/${name}` })
export const orNull = (type: string): Schema => ({ type: [type, 'null'] })
/** Object whose members only Kubernetes knows. */
export const free: Schema = { type: 'object' }
export const map = (values: Schema): Schema => ({ type: 'object', additionalProperties: values })
export const text: Schema = { type: 'string' }
export const boolean: Schema = { type: 'boolean' }
export const count: Schema = { type: 'integer', minimum: 0 }
export const atLeastOne: Schema = { type: 'integer', minimum: 1 }

const SECONDS_OF_PROBE = ['initialDelaySeconds', 'periodSeconds', 'timeoutSeconds', 'terminationGracePeriodSeconds']

export const definitions: Record<string, Schema> = {
  /** Variables by their type in the service's config; a duration may be a number. */
  text: { type: ['string', 'number', 'boolean', 'null'] },
  integer: { anyOf: [{ type: ['integer', 'null'] }, matching('^[0-9]*$')] },
  boolean: { anyOf: [{ type: ['boolean', 'null'] }, matching('^(?i:true|1|yes|on|t|false|0|no|off|f|)$')] },
  name: matching('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$'),
  port: { type: 'integer', minimum: 1, maximum: 65_535 },
  quantity: { anyOf: [{ type: 'number', minimum: 0 }, matching('^[0-9]+(\\.[0-9]+)?([EPTGM]i?|Ki|k|m)?$')] },
  share: { anyOf: [count, matching('^([0-9]+%)?$')] },
  annotations: map(text),
  labels: map(matching('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$')),
  command: list(text),
  resources: object({ requests: map(ref('quantity')), limits: map(ref('quantity')), claims: list(free) }),
  probe: object({
    ...{ httpGet: free, exec: free, tcpSocket: free, grpc: free },
    ...{ successThreshold: atLeastOne, failureThreshold: atLeastOne },
    ...Object.fromEntries(SECONDS_OF_PROBE.map((name) => [name, count])),
  }),
  podSecurityContext: object({
    ...{ runAsNonRoot: boolean, runAsUser: count, runAsGroup: count, fsGroup: count, supplementalGroups: list(count) },
    ...{ fsGroupChangePolicy: oneOf('OnRootMismatch', 'Always'), supplementalGroupsPolicy: oneOf('Merge', 'Strict') },
    ...{ seccompProfile: ref('profile'), appArmorProfile: ref('profile'), seLinuxOptions: free, sysctls: list(free) },
    ...{ windowsOptions: free, seLinuxChangePolicy: oneOf('MountOption', 'Recursive') },
  }),
  securityContext: object({
    ...{ runAsNonRoot: boolean, runAsUser: count, runAsGroup: count, privileged: boolean, procMount: text },
    ...{ allowPrivilegeEscalation: boolean, readOnlyRootFilesystem: boolean },
    ...{ capabilities: object({ add: list(text), drop: list(text) }), windowsOptions: free },
    ...{ seccompProfile: ref('profile'), appArmorProfile: ref('profile'), seLinuxOptions: free },
  }),
  profile: object({ type: oneOf('RuntimeDefault', 'Localhost', 'Unconfined'), localhostProfile: text }),
  strategy: object({
    type: oneOf('RollingUpdate', 'Recreate'),
    rollingUpdate: { anyOf: [{ type: 'null' }, object({ maxUnavailable: ref('share'), maxSurge: ref('share') })] },
  }),
  env: list(
    object({ name: matching('^[A-Za-z_][A-Za-z0-9_]*$'), value: text, valueFrom: free }, { required: ['name'] }),
  ),
  envFrom: list(object({ prefix: text, configMapRef: free, secretRef: free })),
  volumes: list({ type: 'object', required: ['name'] }),
  volumeMounts: list(
    object(
      {
        ...{ name: text, mountPath: text, subPath: text, subPathExpr: text, readOnly: boolean },
        ...{ mountPropagation: text, recursiveReadOnly: text },
      },
      { required: ['name', 'mountPath'] },
    ),
  ),
  tolerations: list(
    object({
      ...{ key: text, operator: oneOf('Equal', 'Exists', 'Lt', 'Gt'), value: text },
      tolerationSeconds: { type: 'integer' },
      effect: oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
    }),
  ),
  affinity: object({ nodeAffinity: free, podAffinity: free, podAntiAffinity: free }),
  spread: list(
    object(
      {
        ...{ maxSkew: atLeastOne, minDomains: atLeastOne, topologyKey: text, labelSelector: free },
        ...{ whenUnsatisfiable: oneOf('ScheduleAnyway', 'DoNotSchedule'), matchLabelKeys: list(text) },
        ...{ nodeAffinityPolicy: oneOf('Honor', 'Ignore'), nodeTaintsPolicy: oneOf('Honor', 'Ignore') },
      },
      { required: ['maxSkew', 'topologyKey', 'whenUnsatisfiable'] },
    ),
  ),
  behavior: object({ scaleUp: free, scaleDown: free }),
  peers: list(object({ podSelector: free, namespaceSelector: free, ipBlock: free })),
  cidrs: list(matching('^[0-9a-fA-F.:]+/[0-9]{1,3}$')),
}
