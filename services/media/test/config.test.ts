import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { embeddedTools } from './clips.ts'
import { mediaHere } from './command-line.ts'
import { settingsOf, startTestService } from './service.ts'

const required = settingsOf('postgres://localhost/media', '/tmp/blobs')

test('all problems are reported at once, by name and never by value', () => {
  const settings = {
    MEDIA_PORT: '99999',
    MEDIA_MAX_DURATION: '40',
    MEDIA_MAX_SIDE: '5761',
    MEDIA_SYNC_WAIT: '601',
    MEDIA_TOMBSTONES_KEEP: '47h',
    MEDIA_BOOTSTRAP_TOKEN: 'hunter2',
    MEDIA_IMPORT_ALLOW_CIDRS: '10.0.0.0/33',
    MEDIA_RATE_LIMIT_UPLOAD: '0',
    MEDIA_DB_NAMESPACE: 'No!',
    MEDIA_UPLOAD_AUTH: 'perhaps',
  }
  const report = refusalOf(settings)
  for (const name of Object.keys(settings)) expect(report).toContain(name)
  expect(report).not.toContain('hunter2')
  expect(refusalOf({ ...required, MEDIA_BASE_URL: '', MEDIA_BLOBS_DIR: '' })).toMatch(
    /MEDIA_BASE_URL is required[\s\S]*MEDIA_BLOBS_DIR is required/,
  )
})

test('a misspelt name is named beside what is missing', () => {
  const report = refusalOf({ ...required, MEDIA_BASE_URL: '', MEDIA_BASE_ULR: 'https://media.example' })
  expect(report).toContain('MEDIA_BASE_URL is required')
  expect(report).toContain('MEDIA_BASE_ULR is not a known variable; the nearest known one is MEDIA_BASE_URL')
})

test('config check refuses the settings that a start refuses, with the code 78, and accepts the others', async () => {
  const check = (settings: Record<string, string>) => mediaHere(['config', 'check'], settings)
  expect(await check(required)).toMatchObject({ code: 0, stdout: 'the configuration is complete\n' })
  expect(await check({ ...required, MEDIA_STORAGE: 's3' })).toMatchObject({
    code: 78,
    stdout: '',
    stderr: expect.stringContaining('MEDIA_S3_BUCKET is required'),
  })
})

test('config check lists all unusable programs at once, and a misspelt name at every log level', async () => {
  const settings = {
    MEDIA_FFMPEG_PATH: '/nowhere/ffmpeg',
    MEDIA_YTDLP_PATH: '/nowhere/yt-dlp',
    MEDIA_LOG_LEVEL: 'error',
  }
  const { stderr } = await mediaHere(['config', 'check'], { ...required, ...settings, MEDIA_MAX_SDIE: '1' })
  for (const name of ['MEDIA_FFMPEG_PATH', 'MEDIA_YTDLP_PATH', 'MEDIA_MAX_SDIE']) expect(stderr).toContain(name)
})

test('sslmode=require is taken as verify-full, and says so', async () => {
  const settings = { ...required, MEDIA_DATABASE_URL: 'postgres://media@127.0.0.1:1/media?sslmode=require' }
  const { code, stdout } = await mediaHere(['config', 'check'], settings)
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('MEDIA_DATABASE_URL: sslmode=require is taken as verify-full'),
  })
})

test.each(['MEDIA_FFMPEG_PATH', 'MEDIA_FFPROBE_PATH', 'MEDIA_YTDLP_PATH'])(
  '%s with a directory or a program that cannot be run is a configuration error',
  async (name) => {
    for (const path of ['/nowhere/program', tmpdir()]) {
      const settings = { ...required, [name]: path }
      expect(await mediaHere(['config', 'check'], settings)).toMatchObject({
        code: 78,
        stderr: expect.stringMatching(`^The configuration has 1 problem.*\n  - ${name}: .*${path}.*\n$`),
      })
    }
  },
)

test.each(['MEDIA_BASE_URL', 'MEDIA_FILES_BASE_URL'])('%s cannot hold what addresses made from it would', (name) => {
  for (const end of ['?cdn=1', '#top', '/ ']) {
    expect(refusalOf({ ...required, [name]: `https://media.example${end}` })).toContain(`${name} must be`)
  }
  expect(refusalOf({ ...required, [name]: 'https://media:hunter2@media.example' })).toMatch(
    new RegExp(`${name} must be`),
  )
  expect(refusalOf({ ...required, [name]: 'https://media.example/path/' })).toBe('')
})

test('settings that depend on others', () => {
  const onEachCore = { ...required, MEDIA_WORKER_CONCURRENCY: '' }
  const { config } = readConfig({ ...onEachCore, MEDIA_FILES_BASE_URL: '', MEDIA_WORK_DIR: '' })
  expect(config.site.filesBaseUrl).toBe(config.site.baseUrl)
  expect(config.storage.workDir).toBe('/tmp/blobs/work')
  expect(config.worker.concurrency).toBeGreaterThan(0)
  const shared = readConfig({ ...onEachCore, MEDIA_WEB_CONCURRENCY: '64' })
  expect(shared.config.worker.concurrency).toBe(1)
  expect(shared.config.worker.concurrencyAlone).toBe(config.worker.concurrencyAlone)
})

describe('storage', () => {
  const { MEDIA_BLOBS_DIR: _, MEDIA_WORK_DIR: workDir = '', ...others } = required
  const s3 = { ...others, MEDIA_STORAGE: 's3' }

  test('in a bucket needs the bucket and a local disk for unfinished files', () => {
    const report = refusalOf({
      ...s3,
      MEDIA_PORT: '99999',
      MEDIA_S3_ENDPOINT: 'ftp://minio',
      MEDIA_S3_PREFIX: 'a/../b',
    })
    for (const name of ['S3_BUCKET is required', 'WORK_DIR is required', 'PORT', 'S3_ENDPOINT', 'S3_PREFIX']) {
      expect(report).toContain(`MEDIA_${name}`)
    }
    expect(report).not.toContain('MEDIA_BLOBS_DIR')
    const { config } = readConfig({ ...s3, MEDIA_S3_BUCKET: 'clips', MEDIA_WORK_DIR: workDir })
    expect(config.storage).toEqual({
      kind: 's3',
      workDir,
      s3: { bucket: 'clips', region: 'us-east-1', prefix: '', forcePathStyle: false },
    })
  })

  test('at another server is addressed by paths, and a folder ends with one slash', () => {
    const server = { MEDIA_S3_ENDPOINT: 'http://minio:9000', MEDIA_S3_PREFIX: '/a/b' }
    const { config } = readConfig({ ...s3, ...server, MEDIA_S3_BUCKET: 'clips', MEDIA_WORK_DIR: workDir })
    expect(config.storage).toMatchObject({ s3: { forcePathStyle: true, prefix: 'a/b/' } })
  })

  test.each(['MEDIA_S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'])('%s alone opens nothing', (name) => {
    const report = refusalOf({ ...s3, MEDIA_S3_BUCKET: 'clips', MEDIA_WORK_DIR: workDir, [name]: 'hunter2' })
    expect(report).toMatch(/MEDIA_S3_(ACCESS_KEY_ID|SECRET_ACCESS_KEY) is required/)
    expect(report).not.toContain('hunter2')
  })

  test('on a disk warns of a bucket name, which has no effect', () => {
    const { warnings } = readConfig({ ...required, MEDIA_S3_BUCKET: 'clips' })
    expect(warnings).toEqual(['MEDIA_S3_BUCKET has no effect without MEDIA_STORAGE=s3'])
  })
})

describe('the scanner', () => {
  const url = { MEDIA_SCAN_URL: 'https://scanner.example/media?key=a' }
  const secret = { MEDIA_SCAN_SECRET: `whsec_${Buffer.alloc(24).toString('base64')}` }

  test('needs an address, and a secret that signs', () => {
    expect(refusalOf({ ...required, ...url })).toContain('MEDIA_SCAN_SECRET is required')
    for (const bad of ['hunter2', `whsec_${Buffer.alloc(23).toString('base64')}`]) {
      const report = refusalOf({ ...required, ...url, MEDIA_SCAN_SECRET: bad })
      expect(report).toContain('MEDIA_SCAN_SECRET must be whsec_')
      expect(report).not.toContain(bad)
    }
    expect(refusalOf({ ...required, ...secret, MEDIA_SCAN_URL: 'ftp://scanner' })).toContain('MEDIA_SCAN_URL')
    expect(readConfig({ ...required, ...url, ...secret }).config.moderation.scanner).toEqual({
      ...{ url: url.MEDIA_SCAN_URL, secret: secret.MEDIA_SCAN_SECRET, isRequired: false },
    })
  })

  test('and hiding by reports warn where they have no effect', () => {
    const { config, warnings } = readConfig({ ...required, MEDIA_SCAN_REQUIRED: 'true', MEDIA_REPORT_HIDE_AT: '3' })
    expect(warnings).toEqual([
      'MEDIA_REPORT_HIDE_AT has no effect without MEDIA_RATE_LIMIT_HEADER',
      'MEDIA_SCAN_REQUIRED has no effect without MEDIA_SCAN_URL',
    ])
    expect(config.moderation.scanner).toBeUndefined()
  })
})

test('the service warns at start of a configured ffmpeg that is as old as the embedded one', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'media-log-'))
  const logFile = join(directory, 'log')
  const service = await startTestService({
    MEDIA_FFMPEG_PATH: embeddedTools.ffmpeg.path,
    MEDIA_LOG_FILE: logFile,
    MEDIA_LOG_LEVEL: 'warn',
  })
  await expect.poll(() => readFile(logFile, 'utf8')).toContain('configured ffmpeg is older than 5')
  await service.close()
  await rm(directory, { recursive: true })
})

function refusalOf(settings: Record<string, string>): string {
  try {
    readConfig(settings)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}
