// The schema of each chart's values, as values.schema.json has it: helm holds values against it before it renders, so that a
// name with a typing error stops an installation. Written by update.ts; a test holds file and source together.
import type { Variables } from '../../packages/common/src/config.ts'

type Schema = Record<string, unknown>

/** What a chart knows of the service it installs. */
export interface ChartFacts {
  name: 'auth' | 'media'
  /** Of variables, as in `AUTH_`. */
  prefix: string
  variables: Variables
  /** Without prefix; what other values decide, so that nobody says it twice. */
  decided: readonly string[]
  /** Patterns of names that the operator makes up; the first of plain ones, the second of secrets. */
  madeUp?: { plain: string; secret: string }
}

/** What must not stand in a ConfigMap, by the end of its name. */
const SECRET = /(SECRET|PASS|DATABASE_URL|_KEYS?|ACCESS_KEY_ID|(?<!_PER)_TOKEN|SMS_TEST_OTP|SMS_HTTP_HEADERS)$/

/** Read by libraries and by Node itself, in every process. */
const FOREIGN =
  '^(OTEL_[A-Z0-9_]+|NODE_[A-Z0-9_]+|AWS_[A-Z0-9_]+|(HTTPS?|NO)_PROXY|TZ|UV_THREADPOOL_SIZE|MALLOC_ARENA_MAX)$'
const FOREIGN_SECRET = '^(OTEL_EXPORTER_OTLP_([A-Z]+_)?HEADERS|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN))$'

const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...more,
})

/** What a template leaves out where it is not there; a value of `null` takes it out. */
const OPTIONAL = [
  ...['nameOverride', 'fullnameOverride', 'global', 'imagePullSecrets', 'existingSecret', 'extraEnv', 'extraEnvFrom'],
  ...['updateStrategy', 'command', 'resources', 'startupProbe', 'livenessProbe', 'readinessProbe', 'hostUsers'],
  ...['podSecurityContext', 'securityContext', 'priorityClassName', 'nodeSelector', 'tolerations', 'affinity'],
  ...['topologySpreadConstraints', 'extraVolumes', 'extraVolumeMounts', 'behavior', 'nodePort', 'className', 'tls'],
  ...[
    'registry',
    'tag',
    'digest',
    'from',
    'to',
    'metricsFrom',
    'extraIngress',
    'extraEgress',
    'existingClaim',
    'medium',
  ],
  ...['storageClass', 'forcePathStyle', 'namespace', 'scrapeTimeout', 'relabelings', 'metricRelabelings'],
]

/** Of values themselves: all that is not optional is needed, and is there unless somebody takes it out. */
const section = (properties: Record<string, Schema>, more: Schema = {}): Schema =>
  object(properties, { ...more, required: Object.keys(properties).filter((name) => !OPTIONAL.includes(name)) })
const list = (items: Schema): Schema => ({ type: 'array', items })
const oneOf = (...values: unknown[]): Schema => ({ enum: values })
const matching = (pattern: string): Schema => ({ type: 'string', pattern })
const ref = (name: string): Schema => ({ $ref: `#/definitions/${name}` })
const orNull = (type: string): Schema => ({ type: [type, 'null'] })
/** What only Kubernetes knows all members of. */
const free: Schema = { type: 'object' }
const map = (values: Schema): Schema => ({ type: 'object', additionalProperties: values })
const text: Schema = { type: 'string' }
const boolean: Schema = { type: 'boolean' }
const count: Schema = { type: 'integer', minimum: 0 }
const atLeastOne: Schema = { type: 'integer', minimum: 1 }

const SECONDS_OF_PROBE = ['initialDelaySeconds', 'periodSeconds', 'timeoutSeconds', 'terminationGracePeriodSeconds']

const definitions: Record<string, Schema> = {
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
    ...{
      httpGet: free,
      exec: free,
      tcpSocket: free,
      grpc: free,
      successThreshold: atLeastOne,
      failureThreshold: atLeastOne,
    },
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
    rollingUpdate: {
      anyOf: [{ type: 'null' }, object({ maxUnavailable: ref('share'), maxSurge: ref('share') })],
    },
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
      ...{
        key: text,
        operator: oneOf('Equal', 'Exists', 'Lt', 'Gt'),
        value: text,
        tolerationSeconds: { type: 'integer' },
      },
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

const scaling = (more: Record<string, Schema> = {}) =>
  section({
    ...{ enabled: boolean, minReplicas: atLeastOne, maxReplicas: atLeastOne, behavior: ref('behavior') },
    ...{ targetCPUUtilizationPercentage: count, ...more },
  })

/** Of pods of the API, and where workers have their own, of these. */
const placement = {
  priorityClassName: ref('name'),
  nodeSelector: ref('labels'),
  tolerations: ref('tolerations'),
  affinity: ref('affinity'),
}

const common: Record<string, Schema> = {
  nameOverride: matching('^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$'),
  fullnameOverride: matching('^([a-z]([-a-z0-9]*[a-z0-9])?)?$'),
  commonLabels: ref('labels'),
  commonAnnotations: ref('annotations'),
  image: section({
    registry: matching('^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?)?$'),
    repository: matching('^[a-z0-9]+([._/-]+[a-z0-9]+)*$'),
    tag: matching('^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$'),
    digest: matching('^(sha256:[0-9a-f]{64})?$'),
    pullPolicy: oneOf('Always', 'IfNotPresent', 'Never'),
  }),
  imagePullSecrets: list({ anyOf: [text, object({ name: text }, { required: ['name'] })] }),
  existingSecret: ref('name'),
  extraEnv: ref('env'),
  extraEnvFrom: ref('envFrom'),
  replicaCount: count,
  updateStrategy: ref('strategy'),
  revisionHistoryLimit: count,
  containerPorts: section({ http: ref('port'), metrics: ref('port') }),
  command: ref('command'),
  args: ref('command'),
  resources: ref('resources'),
  startupProbe: ref('probe'),
  livenessProbe: ref('probe'),
  readinessProbe: ref('probe'),
  preStopSeconds: count,
  terminationGracePeriodSeconds: count,
  podAnnotations: ref('annotations'),
  podLabels: ref('labels'),
  podSecurityContext: ref('podSecurityContext'),
  securityContext: ref('securityContext'),
  tmpSizeLimit: ref('quantity'),
  ...placement,
  topologySpreadConstraints: ref('spread'),
  extraVolumes: ref('volumes'),
  extraVolumeMounts: ref('volumeMounts'),
  pdb: section({ enabled: boolean, minAvailable: ref('share'), maxUnavailable: ref('share') }),
  autoscaling: scaling({ targetMemoryUtilizationPercentage: count }),
  migration: section({
    ...{ enabled: boolean, args: ref('command'), backoffLimit: count, activeDeadlineSeconds: atLeastOne },
    ...{ resources: ref('resources'), podAnnotations: ref('annotations') },
  }),
  serviceAccount: section({ create: boolean, name: ref('name'), annotations: ref('annotations') }),
  service: section({
    type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer'),
    port: ref('port'),
    nodePort: { anyOf: [{ type: 'null' }, ref('port')] },
    annotations: ref('annotations'),
  }),
  ingress: section({
    enabled: boolean,
    className: ref('name'),
    annotations: ref('annotations'),
    hosts: list(
      object(
        {
          host: { type: 'string', minLength: 1 },
          paths: list(
            object(
              { path: matching('^/'), pathType: oneOf('Prefix', 'Exact', 'ImplementationSpecific') },
              { required: ['path'] },
            ),
          ),
        },
        { required: ['host'] },
      ),
    ),
    tls: list(object({ secretName: text, hosts: list(text) })),
  }),
  metrics: section({
    enabled: boolean,
    port: ref('port'),
    serviceMonitor: section({
      ...{ enabled: boolean, namespace: ref('name'), labels: ref('labels') },
      ...{ interval: matching('^[0-9]+(ms|s|m|h)$'), scrapeTimeout: matching('^([0-9]+(ms|s|m|h))?$') },
      ...{ relabelings: list(free), metricRelabelings: list(free) },
    }),
  }),
  test: section({ enabled: boolean }),
  // What a chart that this one is a part of gives to all of its parts.
  global: free,
}

const worker = {
  ...{ enabled: boolean, replicaCount: count, args: ref('command'), resources: ref('resources') },
  ...{ terminationGracePeriodSeconds: count, podAnnotations: ref('annotations'), podLabels: ref('labels') },
}

const networkPolicy = (more: Record<string, Schema>) =>
  section({
    ...{ enabled: boolean, from: ref('peers'), metricsFrom: ref('peers'), dns: section({ to: ref('peers') }) },
    ...{ database: section({ to: ref('peers'), port: ref('port') }), ...more },
    extraIngress: list(object({ ports: list(free), from: ref('peers') })),
    extraEgress: list(object({ ports: list(free), to: ref('peers') })),
  })

const own: Record<ChartFacts['name'], Record<string, Schema>> = {
  auth: {
    worker: section(worker),
    networkPolicy: networkPolicy({
      smtp: section({ to: ref('peers'), ports: list(ref('port')) }),
      https: section({ enabled: boolean, to: ref('peers') }),
    }),
  },
  media: {
    hostUsers: orNull('boolean'),
    storage: section({
      type: oneOf('s3', 'disk'),
      s3: section({
        ...{ bucket: text, region: text, endpoint: matching('^(https?://[^\\s]+)?$'), prefix: text },
        forcePathStyle: orNull('boolean'),
      }),
      disk: section({
        existingClaim: ref('name'),
        accessMode: oneOf('ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'),
        size: ref('quantity'),
        storageClass: matching('^(-|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$'),
        annotations: ref('annotations'),
        keep: boolean,
      }),
      work: section({ sizeLimit: ref('quantity'), medium: oneOf('', 'Memory'), existingClaim: ref('name') }),
    }),
    worker: section({
      ...worker,
      ...placement,
      pdb: section({ enabled: boolean, maxUnavailable: ref('share') }),
      keda: section({
        ...{ enabled: boolean, minReplicas: count, maxReplicas: atLeastOne, clipsPerPod: atLeastOne },
        ...{ pollingInterval: atLeastOne, cooldownPeriod: count, query: text, secretName: ref('name') },
        ...{ secretKey: matching('^[-._A-Za-z0-9]+$'), behavior: ref('behavior') },
      }),
      autoscaling: scaling({ targetCPUUtilizationPercentage: atLeastOne }),
    }),
    networkPolicy: networkPolicy({
      s3: section({ to: ref('peers'), port: ref('port') }),
      internet: section({
        ...{ enabled: boolean, ports: list(ref('port')), except: ref('cidrs'), exceptV6: ref('cidrs') },
      }),
    }),
  },
}

/** Those of the service, by the type it gives them; what is inherited and has no effect is left out. */
export function variablesSchema({ prefix, variables, decided, madeUp }: ChartFacts) {
  const known = Object.entries(variables).filter(
    ([name, { meaning }]) => !decided.includes(name) && !meaning.startsWith('Inherited, without effect'),
  )
  const typed = (entries: typeof known) =>
    Object.fromEntries(
      entries.map(([name, { type }]) => {
        if (name === 'DB_NAMESPACE') return [prefix + name, matching('^([a-z][a-z0-9_]{0,30})?$')]
        return [prefix + name, ref(type === 'integer' || type === 'boolean' ? type : 'text')]
      }),
    )
  const patterns = (...names: (string | undefined)[]) =>
    Object.fromEntries(names.filter((name) => name !== undefined).map((name) => [name, ref('text')]))
  return {
    config: object(typed(known.filter(([name]) => !isSecret(name))), {
      patternProperties: { ...patterns(FOREIGN, madeUp?.plain), [FOREIGN_SECRET]: false },
    }),
    // Any variable may be one: an address can have a password in it.
    secrets: object(typed(known), { patternProperties: patterns(FOREIGN, madeUp?.plain, madeUp?.secret) }),
  }
}

/** Whether the value of this variable must be kept out of ConfigMaps. */
export const isSecret = (name: string): boolean => SECRET.test(name)

export const valuesSchema = (chart: ChartFacts): Schema => ({
  // What Helm before 3.18 knows too.
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: `Values of the chart ${chart.name}`,
  ...section({ ...common, ...own[chart.name], ...variablesSchema(chart) }),
  definitions,
})
