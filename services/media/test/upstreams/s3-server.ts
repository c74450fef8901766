import crypto, { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createFarServer } from '@services/common/testing/http/far-server'
// @ts-expect-error it comes without types
import S3rver from 's3rver'
// @ts-expect-error as above
import account from 's3rver/lib/models/account.js'

/** Faults instead of an answer; a promise delays the answer. */
export type Fault = 'hang' | 'break' | 'stand still' | { status: number; code: string } | Promise<void>

export interface S3Server {
  endpoint: string
  bucket: string
  /** Environment variables for a service. */
  environment: Record<string, string>
  /** Every request so far: method, path and query. */
  requests: string[]
  /** Decides for each request whether something is wrong with it. */
  fault: (request: IncomingMessage) => Fault | undefined
  /** Multipart uploads that have not come to an end, by the folders they are in. */
  unfinished(): Promise<string[]>
  /** Takes an object away, by the path of its address. */
  remove(path: string): Promise<void>
  /** Closes the port and cuts every connection. */
  vanish(): Promise<void>
  /** Listens again at the same address. */
  comeBack(): Promise<void>
  close(): Promise<void>
}

/** The only key that opens the server. */
export const S3_KEY = { accessKeyId: 'AKIDOFTHETESTS', secretAccessKey: 'a-secret-that-nobody-logs' }

const BUCKET = 'clips'
const STAGING = 'staging'

/**
 * s3rver behind a door of ours: it lists and aborts multipart uploads, which s3rver cannot, and goes wrong on demand.
 * Objects are there at once or not at all, as with any S3; s3rver alone writes them in place.
 */
export async function startS3Server(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'media-s3-'))
  account.DUMMY_ACCOUNT.createKeyPair(S3_KEY.accessKeyId, S3_KEY.secretAccessKey)
  const s3rver = new S3rver({ directory, silent: true, vhostBuckets: false })
  // Refusals are answers already; without a listener the event would end the process.
  s3rver.on('error', () => {})
  await Promise.all([BUCKET, STAGING].map((name) => mkdir(join(directory, name))))
  mend(s3rver.store)
  const answer = s3rver.callback() as (request: IncomingMessage, response: ServerResponse) => void
  const uploads = join(directory, BUCKET, '._S3rver_uploads')
  const server = createFarServer(async (request, response) => {
    self.requests.push(`${request.method} ${request.url}`)
    const fault = self.fault(request)
    if (fault === 'hang') return
    if (fault instanceof Promise) await fault
    else if (typeof fault === 'object') return refuse(response, fault)
    else if (fault) cutShort(response, fault)
    const { searchParams } = new URL(request.url ?? '', 'http://s3')
    if (request.method === 'GET' && searchParams.has('uploads')) return listUploads(uploads, searchParams, response)
    if (request.method === 'DELETE' && searchParams.has('uploadId')) {
      return abortUpload(join(uploads, searchParams.get('uploadId') as string), response)
    }
    answer(request, response)
  })
  const listen = (port: number) => new Promise<void>((done) => server.listen(port, '127.0.0.1', done))
  await listen(0)
  const { port } = server.address() as AddressInfo
  const endpoint = `http://127.0.0.1:${port}`
  const vanish = async () => {
    if (!server.listening) return
    const closed = promisify(server.close.bind(server))()
    server.closeAllConnections()
    await closed
  }
  const self: S3Server = {
    endpoint,
    bucket: BUCKET,
    environment: {
      MEDIA_STORAGE: 's3',
      MEDIA_S3_BUCKET: BUCKET,
      MEDIA_S3_ENDPOINT: endpoint,
      MEDIA_S3_ACCESS_KEY_ID: S3_KEY.accessKeyId,
      MEDIA_S3_SECRET_ACCESS_KEY: S3_KEY.secretAccessKey,
    },
    requests: [],
    fault: () => undefined,
    unfinished: async () => (await readdir(uploads).catch(() => [])).map((id) => join(uploads, id)),
    remove: (path) => s3rver.store.deleteObject(BUCKET, path.slice(`/${BUCKET}/`.length)),
    vanish,
    comeBack: () => listen(port),
    close: async () => {
      await vanish()
      await rm(directory, { recursive: true, force: true })
    },
  }
  return self
}

// biome-ignore lint/suspicious/noExplicitAny: it comes without types
function mend(store: any): void {
  const putObject = store.putObject.bind(store)
  store.putObject = async (object: { bucket: string; key: string }) => {
    const staged = { ...object, bucket: STAGING, key: randomUUID() }
    const result = await putObject(staged)
    for (const kind of ['object.md5', 'metadata.json', 'object']) {
      const target = store.getResourcePath(object.bucket, object.key, kind)
      await mkdir(dirname(target), { recursive: true })
      await rename(store.getResourcePath(STAGING, staged.key, kind), target)
    }
    return result
  }
  // It answers before a part is written, and makes an upload that was aborted anew for a part that comes late.
  store.putPart = async (bucket: string, uploadId: string, part: number, content: Readable) => {
    const folder = join(store.getResourcePath(bucket, undefined, 'uploads'), uploadId)
    const staged = store.getResourcePath(STAGING, randomUUID(), 'object')
    const hash = createHash('md5')
    let size = 0
    const measured = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        size += chunk.length
        yield chunk
      }
    }
    await mkdir(dirname(staged), { recursive: true })
    await pipeline(content, measured, createWriteStream(staged))
    await rename(staged, join(folder, String(part)))
    const md5 = hash.digest('hex')
    await writeFile(join(folder, `${part}.md5`), md5)
    return { size, md5 }
  }
  // A page as small as a test can fill.
  const listObjects = store.listObjects.bind(store)
  store.listObjects = (bucket: string, options: { maxKeys: number }) =>
    listObjects(bucket, { ...options, maxKeys: Math.min(options.maxKeys, 5) })
  // It takes an end of 0 for none.
  const getObject = store.getObject.bind(store)
  store.getObject = (bucket: string, key: string, { end, ...options }: { end?: number } = {}) =>
    getObject(bucket, key, { ...options, end: end === 0 ? '0' : end })
}

/** Pages of lists are named in DES, which OpenSSL has given up; triple DES with one key three times is the same. */
function reviveDes(): void {
  const triple = (key: Buffer) => Buffer.concat([key, key, key])
  const { createCipheriv, createDecipheriv } = crypto
  // biome-ignore lint/suspicious/noExplicitAny: all but one algorithm pass through
  type Create = (algorithm: string, key: any, iv: any, ...rest: any[]) => any
  const revived =
    (create: Create): Create =>
    (algorithm, key, ...rest) =>
      algorithm === 'des' ? create('des-ede3-cbc', triple(key), ...rest) : create(algorithm, key, ...rest)
  Object.assign(crypto, {
    createCipheriv: revived(createCipheriv as Create),
    createDecipheriv: revived(createDecipheriv as Create),
  })
}
reviveDes()

function refuse(response: ServerResponse, { status, code }: { status: number; code: string }): void {
  response.writeHead(status, { 'content-type': 'application/xml' })
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>As the test wants it.</Message></Error>`)
}

/** Half of the body, and then the end of the connection, or nothing. */
function cutShort(response: ServerResponse, how: 'break' | 'stand still'): void {
  const write = response.write.bind(response)
  response.write = ((chunk: Buffer) => {
    response.write = () => false
    response.end = () => response
    return write(chunk.subarray(0, chunk.length / 2), () => how === 'break' && response.socket?.destroy())
  }) as typeof response.write
}

/** Two on a page, so that there are several. */
const PAGE = 2

async function listUploads(uploads: string, query: URLSearchParams, response: ServerResponse): Promise<void> {
  const ids = (await readdir(uploads).catch(() => [])).sort()
  const rest = ids.filter((id) => id > (query.get('upload-id-marker') ?? ''))
  const page = await Promise.all(
    rest.slice(0, PAGE).map(async (id) => ({
      id,
      key: await readFile(join(uploads, id, 'key'), 'utf8'),
      initiated: (await stat(join(uploads, id))).mtime.toISOString(),
    })),
  )
  const last = page.at(-1)
  const entries = page.map(
    ({ id, key, initiated }) =>
      `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${initiated}</Initiated></Upload>`,
  )
  response.writeHead(200, { 'content-type': 'application/xml' })
  response.end(
    `<ListMultipartUploadsResult><IsTruncated>${rest.length > PAGE}</IsTruncated><NextKeyMarker>${last?.key ?? ''}</NextKeyMarker><NextUploadIdMarker>${last?.id ?? ''}</NextUploadIdMarker>${entries.join('')}</ListMultipartUploadsResult>`,
  )
}

async function abortUpload(folder: string, response: ServerResponse): Promise<void> {
  // A single rename, so that no part arrives in between.
  const aborted = join(folder, '../../..', randomUUID())
  const isThere = await rename(folder, aborted).then(
    () => true,
    () => false,
  )
  if (!isThere) return refuse(response, { status: 404, code: 'NoSuchUpload' })
  response.writeHead(204)
  response.end()
}
