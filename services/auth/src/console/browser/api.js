// The admin API, called with the rights of the console's cookie. Nothing else is called, so a script can do the same.

/** Address of the service, which may stand below a path. */
const BASE = new URL('../../../', import.meta.url)

/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */
/** @typedef {{ method?: string, body?: unknown, query?: Query, headers?: Record<string, string> }} Call */

/** Codes of a session that has ended, or lost the rights of an administrator. */
const ENDED = [
  'no_authorization',
  'session_not_found',
  'session_expired',
  'user_banned',
  'user_not_found',
  'not_admin',
  'insufficient_aal',
]

export class ApiFailure extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {number} [retryAfterSeconds] */
  constructor(status, code, message, retryAfterSeconds = 0) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
    /** Whether the whole console has said so, in place of the page. */
    this.endsSession = [401, 403].includes(status) && ENDED.includes(code)
  }
}

/** @type {(failure: ApiFailure) => void} */
let endedSession = () => {}

/** @param {(failure: ApiFailure) => void} handler Called when the session has ended elsewhere. */
export const onEndedSession = (handler) => {
  endedSession = handler
}

let answered = () => {}

/** @param {() => void} handler Called after each answer, which keeps the session. */
export const onAnswer = (handler) => {
  answered = handler
}

/** @param {string} path @param {Query} [query] */
export function address(path, query = {}) {
  const url = new URL(path.replace(/^\//, ''), BASE)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(name, String(value))
  }
  return url
}

/** @param {string} path @param {Call} call */
async function send(path, { method = 'GET', body, query, headers }) {
  const answer = await fetch(address(path, query), {
    method,
    headers: { 'x-console': '1', 'x-supabase-api-version': '2024-01-01', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    cache: 'no-store',
    credentials: 'same-origin',
    redirect: 'error',
  }).catch(() => {
    throw new ApiFailure(0, 'unreachable', 'The service cannot be reached. Check your connection and try again.')
  })
  if (!answer.ok) throw await failureOf(answer)
  answered()
  return answer
}

/** @param {Response} answer */
async function failureOf(answer) {
  const { code, message } = await answer.json().catch(() => ({}))
  const text = typeof message === 'string' ? message : `The service answered ${answer.status}`
  const seconds = Number(answer.headers.get('retry-after')) || 0
  const shown = seconds > 0 ? `${text.replace(/\.$/, '')}. Try again in ${duration(seconds)}.` : text
  const failure = new ApiFailure(answer.status, typeof code === 'string' ? code : '', shown, seconds)
  if (failure.endsSession) endedSession(failure)
  return failure
}

/** @param {number} seconds */
const duration = (seconds) => (seconds < 120 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`)

/** @param {Response} answer @returns {Promise<any>} */
const bodyOf = async (answer) => {
  const text = await answer.text()
  return text === '' ? undefined : JSON.parse(text)
}

/** @param {string} path @param {Call} call @returns {Promise<any>} */
const call = async (path, call) => bodyOf(await send(path, call))

export const api = {
  /** @param {string} path @param {Query} [query] */
  get: (path, query) => call(path, { query }),
  /** @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] */
  post: (path, body = {}, headers = {}) => call(path, { method: 'POST', body, headers }),
  /** @param {string} path @param {unknown} body @param {Record<string, string>} [headers] */
  put: (path, body, headers = {}) => call(path, { method: 'PUT', body, headers }),
  /** @param {string} path @param {unknown} body @param {Record<string, string>} [headers] */
  patch: (path, body, headers = {}) => call(path, { method: 'PATCH', body, headers }),
  /** @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] */
  delete: (path, body, headers = {}) => call(path, { method: 'DELETE', body, headers }),

  /** Returns an answer that is no JSON. @param {string} path @param {Query} [query] */
  text: async (path, query) => (await send(path, { query })).text(),

  /**
   * Returns a page of a list; `next` has the parameters of the next one, by cursor or by number.
   * @param {string} path @param {Query} [query] @param {Record<string, string>} [headers]
   */
  async list(path, query, headers) {
    const answer = await send(path, { query, headers })
    const [, target] = /<([^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '') ?? []
    const total = answer.headers.get('x-total-count')
    return {
      body: await bodyOf(answer),
      next: target === undefined ? undefined : nextOf(new URL(target, BASE).searchParams),
      total: total === null ? undefined : Number(total),
    }
  },
}

/** @param {URLSearchParams} parameters @returns {Record<string, string>} */
const nextOf = (parameters) =>
  Object.fromEntries([...parameters].filter(([name]) => name === 'cursor' || name === 'page'))
