import { type Answer, fragmentOf, startTestService, type TestService } from './service.ts'
import { PROVIDER_EXAMPLES } from './upstreams/provider-examples.ts'
import { type FarAccount, type SignInProviders, startSignInProviders } from './upstreams/sign-in-providers.ts'

export interface ProviderSignIns {
  far: SignInProviders
  service: TestService
  /**
   * One whole sign-in by a browser: `query` goes to GET /authorize, `brings` is what it brings back beside what it
   * should.
   */
  signIn(name: string, account: FarAccount, more?: { query?: string; brings?: Record<string, string> }): Promise<SignIn>
  /** The same up to the provider's page; the returned functions continue from there. */
  begin(name: string, account: FarAccount, query?: string): Promise<BegunSignIn>
  /** Returns a person with a new id and address. */
  newAccount(name: string): Required<FarAccount>
  close(): Promise<void>
}

export interface BegunSignIn {
  comeBack(brings?: Record<string, string>): Promise<SignIn>
}

export interface SignIn {
  /** Where the browser was sent. */
  location: URL
  answer: Pick<Answer, 'status' | 'headers'>
}

/** A service with all built-in providers enabled, each at an upstream that answers as documented. */
export async function startProviderSignIns(settings: Record<string, string> = {}): Promise<ProviderSignIns> {
  const far = await startSignInProviders(PROVIDER_EXAMPLES)
  const service = await startTestService({ ...far.settings(...Object.keys(PROVIDER_EXAMPLES)), ...settings })
  let accounts = 1000
  const begin = async (name: string, account: FarAccount, query = ''): Promise<BegunSignIn> => {
    far.forgetRequests(name)
    const begun = await service.get(`/authorize?provider=${name}&redirect_to=https://site.example/app${query}`)
    const location = new URL(String(begun.headers.location))
    return {
      async comeBack(brings = {}) {
        const callback = { ...far.visit(name, location, account), ...brings }
        const isPosted = location.searchParams.get('response_mode') === 'form_post'
        const answer = isPosted
          ? await service.submit('/callback', callback)
          : await service.get(`/callback?${new URLSearchParams(callback)}`)
        return { location, answer }
      },
    }
  }
  return {
    far,
    service,
    begin,
    newAccount: (name) => ({ id: String(++accounts), email: `${name}-${accounts}@example.com` }),
    async signIn(name, account, { query = '', brings = {} } = {}) {
      const begun = await begin(name, account, query)
      return begun.comeBack(brings)
    },
    async close() {
      await service.close()
      await far.close()
    },
  }
}

/** The signed-in user, from GET /user. */
export async function signedInUser({ get }: TestService, { answer }: SignIn) {
  const { access_token } = fragmentOf(answer as Answer)
  const { body } = await get('/user', { authorization: `Bearer ${access_token}` })
  return body
}

/** Answer to the application: the redirect's status, target and query. */
export function refusalOf({ answer }: SignIn) {
  const location = new URL(String(answer.headers.location))
  const told = Object.fromEntries(location.searchParams)
  return { status: answer.status, to: location.origin + location.pathname, ...told }
}
