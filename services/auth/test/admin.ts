import { SignJWT } from 'jose'
import { type Answer, SECRET, type TestService } from './service.ts'

/** A token made from the secret, as operators make them. */
export const signed = (claims: object): Promise<string> =>
  new SignJWT({ ...claims }).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(SECRET))

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

export interface Admin {
  auth: { authorization: string }
  get(url: string, headers?: Record<string, string>): Promise<Answer>
  post(url: string, body?: object): Promise<Answer>
  put(url: string, body: object): Promise<Answer>
  delete(url: string, body?: object): Promise<Answer>
  /** Creates a user and returns the answer's body. */
  // biome-ignore lint/suspicious/noExplicitAny: bodies are what the test says they are
  create(user: object): Promise<any>
  /** Audit entries of this action on this user. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  audited(action: string, userId: string): Promise<any[]>
}

/** The service as its admin sees it. */
export async function asAdmin(service: TestService): Promise<Admin> {
  const auth = bearer(await signed({ role: 'service_role' }))
  const create = async (user: object) => (await service.post('/admin/users', user, auth)).body
  return {
    auth,
    get: (url, headers = {}) => service.get(url, { ...auth, ...headers }),
    post: (url, body = {}) => service.post(url, body, auth),
    put: (url, body) => service.put(url, body, auth),
    delete: (url, body) => remove(service, url, auth, body),
    create,
    audited: async (action, userId) => {
      const { body } = await service.get(`/admin/audit?per_page=1000&query=action:${action}`, auth)
      const payloads = body.map(({ payload }: { payload: { traits?: { user_id?: string } } }) => payload)
      return payloads.filter(({ traits }: { traits?: { user_id?: string } }) => traits?.user_id === userId)
    },
  }
}

export async function remove(
  service: TestService,
  url: string,
  headers: Record<string, string>,
  body?: object,
): Promise<Answer> {
  const response = await service.app.inject({ method: 'DELETE', url, headers, ...(body ? { payload: body } : {}) })
  const { payload, statusCode: status } = response
  return { status, text: payload, body: payload ? response.json() : undefined, headers: response.headers }
}

let count = 0
/** An address that is new in this file. */
export const freshEmail = (): string => `person-${count++}@example.com`
export const freshPhone = (): string => `4917${String(1_000_000 + count++)}`
