// One request and its answer, with the bytes of the body reported while they are sent. Nothing here retries.

export interface CallOptions {
  /** Ends the call and its retries; the call throws the signal's reason. */
  signal?: AbortSignal
}

export interface Connection {
  /** Without a slash at its end. */
  baseUrl: string
  token: string | undefined
  fetch: typeof fetch
  /** False for a fetch of the caller, which gets every request. */
  isDefaultFetch: boolean
}

export interface Request {
  method: string
  /** Path and query. */
  path: string
  headers?: Record<string, string>
  /** Makes the body, anew for each attempt. */
  body?: () => Blob | FormData | string
  signal?: AbortSignal | undefined
  /** Bytes of the body that are sent. */
  onSent?: ((bytes: number) => void) | undefined
}

export interface Answer {
  status: number
  headers: Headers
  text: string
}

/** Throws the failure of fetch when there is no complete answer, and the reason of an abort. */
export async function exchange(connection: Connection, request: Request): Promise<Answer> {
  request.signal?.throwIfAborted()
  const body = request.body?.()
  if (!request.onSent || body === undefined || typeof body === 'string') return fetchAnswer(connection, request, body)
  // Only this interface reports progress in browsers: streams of fetch need HTTP/2, and not all browsers have them.
  const { XMLHttpRequest } = globalThis as { XMLHttpRequest?: new () => Xhr }
  if (XMLHttpRequest && connection.isDefaultFetch) return sendXhr(new XMLHttpRequest(), connection, request, body)
  // A service worker has neither that interface nor streams.
  const isServer = !XMLHttpRequest && 'process' in globalThis
  return isServer ? fetchCounted(connection, request, body) : fetchAnswer(connection, request, body)
}

export const open = ({ baseUrl, token, fetch }: Connection, request: Request, init: RequestInit = {}) =>
  fetch(baseUrl + request.path, {
    method: request.method,
    headers: headersOf(token, request),
    // The token must not follow to another host; the service itself never redirects these paths.
    redirect: 'error',
    credentials: 'omit',
    ...(request.signal && { signal: request.signal }),
    ...init,
  })

const headersOf = (token: string | undefined, { headers }: Request) => ({ ...(token && { token }), ...headers })

async function fetchAnswer(connection: Connection, request: Request, body: Blob | FormData | string | undefined) {
  const response = await open(connection, request, body === undefined ? {} : { body })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

async function fetchCounted(connection: Connection, request: Request, body: Blob | FormData): Promise<Answer> {
  const encoded = new Response(body)
  let sent = 0
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      sent += chunk.byteLength
      request.onSent?.(sent)
      controller.enqueue(chunk)
    },
  })
  const type = encoded.headers.get('content-type')
  const headers = { ...(type && { 'content-type': type }), ...request.headers }
  const stream = encoded.body?.pipeThrough(counter)
  const streamed = { body: stream, duplex: 'half' } as RequestInit
  const response = await open(connection, { ...request, headers }, streamed)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Members of XMLHttpRequest that we use; Node has neither the class nor its type. */
interface Xhr {
  upload: { onprogress: ((event: { loaded: number }) => void) | null }
  status: number
  responseText: string
  onload: (() => void) | null
  onerror: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getAllResponseHeaders(): string
  send(body: Blob | FormData): void
  abort(): void
}

function sendXhr(xhr: Xhr, { baseUrl, token }: Connection, request: Request, body: Blob | FormData): Promise<Answer> {
  const { method, path, signal, onSent } = request
  return new Promise((resolve, reject) => {
    const abort = () => {
      xhr.abort()
      reject(signal?.reason)
    }
    const settled = () => signal?.removeEventListener('abort', abort)
    signal?.addEventListener('abort', abort)
    xhr.upload.onprogress = ({ loaded }) => onSent?.(loaded)
    xhr.onload = () => {
      settled()
      resolve({ status: xhr.status, headers: parseHeaders(xhr.getAllResponseHeaders()), text: xhr.responseText })
    }
    xhr.onerror = () => {
      settled()
      reject(new TypeError('The request failed.'))
    }
    xhr.open(method, baseUrl + path)
    for (const [name, value] of Object.entries(headersOf(token, request))) xhr.setRequestHeader(name, value)
    xhr.send(body)
  })
}

function parseHeaders(lines: string): Headers {
  const headers = new Headers()
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return headers
}

/** Throws a TypeError for a text that is no id: `..` would be another address. */
export function pathOf(id: string): string {
  if (!/^\w+$/.test(id)) throw new TypeError('not the id of a clip')
  return `/media/${id}`
}
