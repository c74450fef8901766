// The source of each chart's values.schema.json, which update.ts writes. helm validates values before it renders, so a
// misspelt name stops an installation. Definitions: schema-definitions.ts. Variables: variables-schema.ts. Tests:
// schema-tests.ts.
import type { ChartFacts } from './chart-facts.ts'
import {
  atLeastOne,
  boolean,
  count,
  definitions,
  free,
  list,
  matching,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  text,
} from './schema-definitions.ts'
import { variablesSchema } from './variables-schema.ts'

/** Values that may be absent or null. */
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
    'consoleFrom',
    'extraIngress',
    'extraEgress',
    'existingClaim',
  ],
  ...['medium', 'storageClass', 'forcePathStyle', 'namespace', 'scrapeTimeout', 'relabelings', 'metricRelabelings'],
]

/** Object of values; all members but the optional ones are required, and null would remove them. */
const section = (properties: Record<string, Schema>, more: Schema = {}): Schema =>
  object(properties, { ...more, required: Object.keys(properties).filter((name) => !OPTIONAL.includes(name)) })

const scaling = (more: Record<string, Schema> = {}) =>
  section({
    ...{ enabled: boolean, minReplicas: atLeastOne, maxReplicas: atLeastOne, behavior: ref('behavior') },
    ...{ targetCPUUtilizationPercentage: count, ...more },
  })

const placement = {
  priorityClassName: ref('name'),
  nodeSelector: ref('labels'),
  tolerations: ref('tolerations'),
  affinity: ref('affinity'),
}

const ingressPath = object(
  { path: matching('^/'), pathType: oneOf('Prefix', 'Exact', 'ImplementationSpecific') },
  { required: ['path'] },
)

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
    hosts: list(object({ host: { type: 'string', minLength: 1 }, paths: list(ingressPath) }, { required: ['host'] })),
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
  // Values that a parent chart passes to all its subcharts.
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
    console: section({ enabled: boolean, port: ref('port') }),
    networkPolicy: networkPolicy({
      consoleFrom: ref('peers'),
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

export const valuesSchema = (chart: ChartFacts): Schema => ({
  // Helm before 3.18 supports this draft.
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: `Values of the chart ${chart.name}`,
  ...section({ ...common, ...own[chart.name], ...variablesSchema(chart) }),
  definitions,
})
