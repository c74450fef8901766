import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

interface ComposeService {
  image: string
  build?: { context: string; dockerfile: string }
  command?: string[]
  environment?: Record<string, string | number>
  ports?: string[]
  depends_on?: Record<string, { condition: string }>
  tmpfs?: string[]
  volumes?: string[]
  configs?: { source: string; target: string }[]
  healthcheck?: { test?: string[]; disable?: boolean }
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
}

interface ComposeFile {
  services: Record<string, ComposeService>
  configs: Record<string, { content: string }>
  volumes: Record<string, unknown>
}

/** Reads compose.yaml with anchors and `<<`, as Compose does. */
const readCompose = (): ComposeFile =>
  parse(readFileSync(new URL('compose.yaml', import.meta.url), 'utf8'), { merge: true })

const environmentOf = ({ environment = {} }: ComposeService): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]))

const run = promisify(execFile)
const repository = resolve(import.meta.dirname, '..')
const { services, configs, volumes } = readCompose()
const each = Object.entries(services)
const ours = each.filter(([name]) => name === 'auth' || name === 'media')
const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')

describe.each(each)('%s', (name, service) => {
  test('is built from a Dockerfile here, or has a pinned version', () => {
    if (service.build) {
      expect(resolve(import.meta.dirname, service.build.context)).toBe(repository)
      expect(readFileSync(join(repository, service.build.dockerfile), 'utf8')).toMatch(/^FROM /m)
    } else expect(service.image).toMatch(/:v?\d+\.\d+(\.\d+)?(-[a-z]+)?(@sha256:[0-9a-f]{64})?$/)
  })

  test('has no needless rights and is reachable from this machine only', () => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
    expect(service.tmpfs).toContain('/tmp')
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:(\d+):\1$/)
  })

  test('depends on existing services and mounts existing volumes', () => {
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      expect(services).toHaveProperty(other)
      // Our Dockerfiles define health checks; other services need their own.
      if (condition === 'service_healthy') expect(services[other]?.healthcheck?.test?.[0]).toBe('CMD')
    }
    for (const { source } of service.configs ?? []) expect(configs).toHaveProperty([source])
    for (const volume of service.volumes ?? []) expect(volumes).toHaveProperty(volume.split(':')[0] as string)
  })

  test('has the ports that the README lists', () => {
    for (const port of service.ports ?? []) {
      expect(readme).toMatch(new RegExp(`^\\| ${name} .*${port.split(':')[1]}.*\\|$`, 'm'))
    }
  })
})

describe.each(ours)('%s', (name, service) => {
  test('has settings that its configuration accepts', async () => {
    const { readConfig } = await import(`../services/${name}/src/config.ts`)
    const { warnings } = readConfig(environmentOf(service), {})
    expect(warnings).toEqual([])
  })

  test('reaches database, mail and storage by existing names and keys', () => {
    const settings = environmentOf(service)
    const database = new URL(settings[`${name.toUpperCase()}_DATABASE_URL`] as string)
    expect(database.hostname).toBe('postgres')
    const sql = configs['databases.sql']?.content ?? ''
    expect(sql).toContain(`create role ${database.username} login password '${database.password}';`)
    expect(sql).toContain(`create database ${database.pathname.slice(1)} owner ${database.username};`)
    for (const host of [
      settings.AUTH_SMTP_HOST,
      settings.MEDIA_S3_ENDPOINT && new URL(settings.MEDIA_S3_ENDPOINT).hostname,
    ]) {
      if (host) expect(services).toHaveProperty(host)
    }
  })
})

test('every secret is marked as one for development', () => {
  const secrets = each.flatMap(([, service]) =>
    Object.entries(environmentOf(service)).filter(([name]) => SECRET.test(name)),
  )
  expect(secrets.length).toBeGreaterThan(5)
  for (const [name, value] of secrets)
    expect({ name, value }).toEqual({ name, value: expect.stringMatching(/^development-only/) })
  const { identities } = JSON.parse(configs['s3.json']?.content ?? '')
  const [{ accessKey, secretKey }] = identities[0].credentials
  const { MEDIA_S3_ACCESS_KEY_ID, MEDIA_S3_SECRET_ACCESS_KEY } = services.media?.environment ?? {}
  expect([accessKey, secretKey]).toEqual([MEDIA_S3_ACCESS_KEY_ID, MEDIA_S3_SECRET_ACCESS_KEY])
})

const SECRET = /SECRET|PASSWORD|_KEY$|KEY_ID$|TOKEN$/

test('the step that creates the bucket may run again', async () => {
  const { S3_KEY, startS3Server } = await import('../services/media/test/upstreams/s3-server.ts')
  const server = await startS3Server()
  try {
    const [program, ...args] = services.bucket?.command ?? []
    expect(program).toBe('node')
    const env = {
      ...{ MEDIA_S3_ENDPOINT: server.endpoint, MEDIA_S3_BUCKET: 'fresh' },
      ...{ MEDIA_S3_ACCESS_KEY_ID: S3_KEY.accessKeyId, MEDIA_S3_SECRET_ACCESS_KEY: S3_KEY.secretAccessKey },
    }
    const make = () => run(process.execPath, args, { cwd: join(repository, 'services/media'), env })
    await make()
    await make()
    expect(server.requests.filter((request) => request.startsWith('PUT /fresh'))).toHaveLength(2)
  } finally {
    await server.close()
  }
})
