import { BlockList } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { openDatabase } from '../../packages/common/src/database/pool.ts'
import { migrateAll } from '../../packages/common/src/process/service-database.ts'
import { openQueue, type Queue } from '../../packages/common/src/queue/queue.ts'
import { createLogger } from '../../packages/common/src/telemetry/logger.ts'
import { cloneTemplate } from '../../packages/common/src/testing/database/template-database.ts'
import { readConfig } from '../../services/media/src/config.ts'
import { SCHEMA } from '../../services/media/src/deps.ts'
import { chartTests } from './chart-tests.ts'
import { chartFolder, type KubernetesObject, render, valueFile } from './helm.ts'
import { chart } from './media-chart.ts'
import { all, find, pods } from './rendered-objects.ts'

const minimal = {
  config: { MEDIA_BASE_URL: 'https://media.example.com' },
  existingSecret: 'media-secrets',
  storage: { s3: { bucket: 'clips' } },
}

const disk = (accessMode: string) => ({ storage: { type: 'disk', disk: { accessMode } } })

chartTests({
  ...chart,
  readConfig,
  elsewhere: { MEDIA_DATABASE_URL: 'postgres://media:secret@postgres/media', MEDIA_GIPHY_API_KEY: 'key' },
  minimal,
  refused: [
    ['no address of its own', { config: { MEDIA_BASE_URL: '' } }, /config\.MEDIA_BASE_URL is required/],
    ['no database', { existingSecret: '' }, /existingSecret is required.* secrets\.MEDIA_DATABASE_URL/],
    [
      'no bucket',
      { existingSecret: '', secrets: { MEDIA_DATABASE_URL: 'x' }, storage: { s3: { bucket: '' } } },
      /storage\.s3\.bucket is required/,
    ],
    [
      'a volume for one pod beside a worker',
      disk('ReadWriteOnce'),
      /storage\.disk\.accessMode is ReadWriteOnce, a volume for one pod: make it ReadWriteMany, or set worker\.enabled/,
    ],
    [
      'a volume for one pod with two of the API',
      { ...disk('ReadWriteOncePod'), worker: { enabled: false }, replicaCount: 2 },
      /storage\.disk\.accessMode is ReadWriteOncePod/,
    ],
    [
      'a volume for one pod with a number that changes',
      { ...disk('ReadWriteOnce'), worker: { enabled: false }, autoscaling: { enabled: true } },
      /storage\.disk\.accessMode is ReadWriteOnce/,
    ],
    [
      'two that scale workers',
      { worker: { keda: { enabled: true }, autoscaling: { enabled: true } } },
      /worker\.keda\.enabled and worker\.autoscaling\.enabled are both true/,
    ],
    [
      'to scale workers without resource requests',
      { worker: { autoscaling: { enabled: true }, resources: null } },
      /worker\.autoscaling\.targetCPUUtilizationPercentage needs worker\.resources\.requests\.cpu/,
    ],
    [
      'scaling without workers',
      { worker: { enabled: false, keda: { enabled: true } } },
      /worker\.keda\.enabled needs worker\.enabled/,
    ],
    [
      'a connection that KEDA cannot find',
      {
        existingSecret: '',
        extraEnv: [{ name: 'MEDIA_DATABASE_URL', valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }],
        worker: { keda: { enabled: true } },
      },
      /worker\.keda\.secretName is required/,
    ],
    [
      'fewest workers above most',
      { worker: { autoscaling: { enabled: true, minReplicas: 5, maxReplicas: 4 } } },
      /worker\.autoscaling\.minReplicas is above/,
    ],
  ],
  wrong: [
    ['/worker', null],
    ['/podAnnotations', null],
    ['/networkPolicy/database', null],
    ['/service/port', null],
    ['/replicaCount', -1],
    ['/config/MEDIA_BASE_URI', 'https://media.example.com'],
    ['/config/MEDIA_BOOTSTRAP_TOKEN', 'a token that everybody could read'],
    ['/config/AWS_SECRET_ACCESS_KEY', 'x'],
    ['/config/OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'api-key=x'],
    ['/config/MEDIA_STORAGE', 's3'],
    ['/config/MEDIA_BLOBS_DIR', '/tmp'],
    ['/config/MEDIA_DB_NAMESPACE', 'x; drop table clips'],
    ['/config/MEDIA_MAX_FILE_BYTES', '150M'],
    ['/secrets/MEDIA_DATABASE', 'x'],
    ['/storage/type', 'S3'],
    ['/storage/s3/bukket', 'x'],
    ['/storage/s3/endpoint', 'objects.example.com'],
    ['/storage/s3/forcePathStyle', 'yes'],
    ['/storage/disk/accessMode', 'ReadOnlyMany'],
    ['/storage/disk/size', 'large'],
    ['/storage/work', { medium: 'memory' }],
    ['/hostUsers', 'false'],
    ['/worker/keda/enabled', 1],
    ['/worker/keda/clipsPerPod', 0],
    ['/worker/keda/maxReplica', 3],
    ['/worker/autoscaling/targetMemoryUtilizationPercentage', 80],
    ['/worker/autoscaling/targetCPUUtilizationPercentage', 0],
    ['/worker/pdb/minAvailable', 1],
    ['/worker/tolerations', [{ key: 'a', operator: 'Is' }]],
    ['/networkPolicy/internet/except', ['10.0.0.0']],
    ['/networkPolicy/internet/ports', ['http']],
    ['/networkPolicy/smtp', {}],
    ['/image/repository', 'Media'],
    ['/tmpSizeLimit', '1 GB'],
  ],
})

describe('the chart media', { tags: 'helm' }, () => {
  const file = (name: string) => join(chartFolder('media'), `ci/${name}.yaml`)
  let everything: KubernetesObject[]
  let unprefixed: KubernetesObject[]
  beforeAll(async () => {
    const keda = await valueFile({ worker: { keda: { enabled: true } } })
    ;[everything, unprefixed] = await Promise.all([
      render('media', 'rel', file('everything')),
      render('media', 'rel', file('minimal'), keda),
    ])
  })

  test('a volume for one pod is never in two: the old pod ends first', async () => {
    const objects = await render('media', 'rel', file('secrets'))
    expect(all(objects, 'Deployment').map(({ spec }) => [spec.replicas, spec.strategy])).toEqual([
      [1, { type: 'Recreate' }],
    ])
    expect(find(objects, 'PersistentVolumeClaim').spec.accessModes).toEqual(['ReadWriteOncePod'])
  })

  test('a volume of the chart outlives the release by default', async () => {
    const values = await valueFile({ storage: { type: 'disk' } })
    const claim = find(await render('media', 'rel', file('minimal'), values), 'PersistentVolumeClaim')
    expect(claim.metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' })
  })

  test.each([
    ...['10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['168.63.129.16', '0.0.0.0', '224.0.0.1', '255.255.255.255'],
    ...[
      '::1',
      'fd00:ec2::254',
      'fe80::1',
      'fc00::1',
      '::ffff:10.1.2.3',
      '64:ff9b::a01:203',
      '2001:db8::1',
      '2002:a01:203::1',
    ],
  ])('the network policy blocks %s on web ports', (address) => {
    const [api, worker] = all(unprefixed, 'NetworkPolicy')
    expect(permits(api, '8.8.8.8') && permits(worker, '2606:4700::1111')).toBe(true)
    expect(permits(api, address) || permits(worker, address)).toBe(false)
  })

  test('beside the internet only DNS, the database and a configured bucket are reachable', () => {
    const open = (objects: KubernetesObject[]) =>
      all(objects, 'NetworkPolicy').flatMap(({ spec }) => spec.egress.filter((rule: { to?: unknown }) => !rule.to))
    expect(new Set(open(unprefixed).flatMap(({ ports }) => ports.map(({ port }: { port: number }) => port)))).toEqual(
      new Set([53, 5432]),
    )
    expect(open(everything)).toEqual([])
    const bucket = all(everything, 'NetworkPolicy').map(({ spec }) =>
      spec.egress.some(({ ports }: { ports: { port: number }[] }) => ports.some(({ port }) => port === 9000)),
    )
    expect(bucket, 'api, worker, migration').toEqual([true, true, false])
  })

  test('a bucket on the internet is reachable on its own port', async () => {
    const values = await valueFile({ networkPolicy: { s3: { port: 9000 } } })
    const [api, worker] = all(await render('media', 'rel', file('minimal'), values), 'NetworkPolicy')
    for (const policy of [api, worker]) {
      expect(permits(policy, '8.8.8.8', 9000)).toBe(true)
      expect(permits(policy, '10.1.2.3', 9000)).toBe(false)
    }
  })

  test('extra volumes are mounted in the migration pod too, for a certificate of the database', async () => {
    const values = await valueFile({
      extraVolumes: [{ name: 'authority', configMap: { name: 'authority' } }],
      extraVolumeMounts: [{ name: 'authority', mountPath: '/etc/authority' }],
    })
    const objects = await render('media', 'rel', file('minimal'), values)
    for (const [owner, { volumes, containers }] of pods(objects).filter(([name]) => !name.startsWith('Pod '))) {
      expect(volumes, owner).toContainEqual({ name: 'authority', configMap: { name: 'authority' } })
      expect(containers[0].volumeMounts, owner).toContainEqual({ name: 'authority', mountPath: '/etc/authority' })
    }
  })

  test.each([
    ['without a namespace', () => unprefixed, ''],
    ['with one', () => everything, 'acme'],
  ])('KEDA counts waiting and running clips, %s', async (_name, objects, namespace) => {
    const { query } = find(objects(), 'ScaledObject').spec.triggers[0].metadata
    expect(find(objects(), 'TriggerAuthentication').spec.secretTargetRef).toHaveLength(1)
    const log = createLogger({ name: 'test', level: 'fatal' })
    const name = `${inject('testRunId')}_chart${namespace}`
    const settings = { ...minimal.config, MEDIA_DB_NAMESPACE: namespace, MEDIA_BLOBS_DIR: '/tmp' }
    const { url, drop } = await cloneTemplate(inject('databaseServerUrl'), name, async (database) => {
      await migrateAll(SCHEMA, readConfig({ ...settings, MEDIA_DATABASE_URL: database }).config, log)
    })
    const schema = `${namespace ? `${namespace}_` : ''}media_queue`
    const { db, pool, close } = openDatabase({ url, maxPoolSize: 1, applicationName: 'test', log })
    const queue: Queue = await openQueue({
      ...{ url, schema, applicationName: 'test', queues: [], log },
      ...{ migrate: false, supervise: false },
    })
    const count = async () => {
      const { rows } = await pool.query(query)
      return Object.values(rows[0]).map(Number)
    }
    try {
      expect(await count()).toEqual([0])
      await db.transaction().execute(async (trx) => {
        for (let clip = 0; clip < 4; clip++) await queue.send(trx, 'transcode', {}, { tenant: 'token' })
        await queue.send(trx, 'transcode', {}, { afterSeconds: 3600 })
        await queue.send(trx, 'webhook', {})
      })
      expect(await count(), 'four may begin; one waits for an hour, one is no clip').toEqual([4])
      const some = (state: string, rank: number) =>
        pool.query(`update ${schema}.job set state = '${state}' where name = 'transcode' and id in
          (select id from ${schema}.job where name = 'transcode' and start_after <= now() order by id offset ${rank} limit 1)`)
      await some('active', 0)
      await some('retry', 1)
      expect(await count(), 'one is being made, one is tried again').toEqual([4])
      await some('completed', 2)
      await some('failed', 3)
      expect(await count()).toEqual([2])
    } finally {
      await queue.stop(0)
      await close()
      await drop()
    }
  })
})

/** Whether a rule permits this address and port because of the address. */
function permits(policy: KubernetesObject | undefined, address: string, port = 443): boolean {
  const family = address.includes(':') ? 'ipv6' : 'ipv4'
  const contains = (cidr: string) => {
    const [network, bits] = cidr.split('/') as [string, string]
    if (network.includes(':') !== address.includes(':')) return false
    const list = new BlockList()
    list.addSubnet(network, Number(bits), family)
    return list.check(address, family)
  }
  interface Peer {
    ipBlock?: { cidr: string; except?: string[] }
  }
  return policy?.spec.egress.some(
    ({ ports, to = [] }: { ports: { port: number }[]; to?: Peer[] }) =>
      ports.some((each) => each.port === port) &&
      to.some(({ ipBlock }) => ipBlock && contains(ipBlock.cidr) && !ipBlock.except?.some(contains)),
  )
}
