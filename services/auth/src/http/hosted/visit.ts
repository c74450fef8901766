// One request to a hosted page, and all that a page may do with it. A page is a file in flows/pages and gets a visit
// (answer-pages.ts). It asks the API (`api`), shows itself (`show`, `formOf`) or leads on (`goTo`, `signedIn`). Its
// words are those of the reader's language (`words`, `explain`). Tests: flows/pages.
import { createHash, createHmac } from 'node:crypto'
import { type Html, type HtmlValue, html } from '@services/common/html'
import { cookiesOf, setCookie } from '@services/common/pages/cookies'
import { PAGE_HEADERS } from '@services/common/pages/document'
import { hiddenFields } from '@services/common/pages/forms'
import { notice } from '@services/common/pages/notices'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { decodeJwt } from 'jose'
import { ARRIVAL_PATH, FACTORS_PATH, isForPagesAlone } from '../../config/pages/page-paths.ts'
import { lacksFactor } from '../../core/factors/assurance.ts'
import { isSecondFactorDemanded } from '../../core/freshness/require-fresh.ts'
import { deriveKey } from '../../core/keys/derive-key.ts'
import { MAX_TARGET_LENGTH } from '../../core/redirects/allow-list-patterns.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { AmrEntry, FactorJson, Metadata } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import type { Language, Table } from '../../words/language.ts'
import { explain, type Refusal } from '../../words/pages/errors.ts'
import { textsOf } from '../bodies/form-body.ts'
import { DEVICE_TOKEN } from '../caller/trusted-device.ts'
import { clientOf } from '../limits/client.ts'
import { acceptLanguageOf, externalBase } from '../pages/mail-context.ts'
import { givePageSecret, isProven, pageSecretsOf, proofOf } from '../pages/page-cookie.ts'
import { pageLanguage } from '../pages/page-words.ts'
import { leaveTo, sendTo } from '../pages/send-to.ts'
import { publicPath, type ShownPage, showPage } from '../pages/show-page.ts'
import { type BrowserCaller, HOSTED_COOKIE, openBrowserSessions } from './browser-session.ts'
import { type ApiAnswer, type ApiCall, callApi, streamApi } from './call-api.ts'
import { type Carried, openCarried, PAGE_SECONDS, sealCarried } from './carried.ts'
import { type Flow, readFlow, toApplication } from './flow.ts'
import { addressWithSession, ownPathOf, sessionForApplication, targetOf } from './hand-over.ts'
import { openPasskeyOffer, PASSKEY_PATH } from './passkey-offer.ts'
import { takeSession } from './take-session.ts'

type Fields = Readonly<Record<string, string>>

export type Visit = ReturnType<ReturnType<typeof openVisits>>

export interface VisitedPage {
  path: string
}

export interface ShownVisit
  extends Pick<ShownPage, 'title' | 'scripts' | 'isWide' | 'hidesAddress' | 'head' | 'frames'> {
  body: HtmlValue
  /** Refusal, in words. */
  problem?: string | undefined
  /** Other news. */
  news?: string | undefined
  status?: number
}

interface Form {
  /** Path of the page that takes it; the page itself by default. */
  action?: string
  /** Hidden fields. */
  fields?: Readonly<Record<string, string | undefined>>
  body: HtmlValue
}

/** Prepares the visits of an app. */
export function openVisits(app: FastifyInstance, deps: Deps) {
  const { config } = deps
  const sessions = openBrowserSessions(deps, HOSTED_COOKIE)
  const passkeyOffer = openPasskeyOffer(deps)
  const key = deriveKey(config.jwt.secret, 'page')
  const isSecure = config.server.externalUrl.startsWith('https:')
  const deviceCookie = isSecure ? '__Host-auth-device' : 'auth-device'
  const verifierOf = (secret: string, nonce: string) =>
    createHmac('sha256', key).update(`arrival ${secret} ${nonce}`).digest('base64url')

  return (request: FastifyRequest, reply: FastifyReply, { path }: VisitedPage) => {
    const query = textsOf(request.query)
    const form = textsOf(request.body)
    const isPost = request.method === 'POST'
    const given: Fields = isPost ? form : query
    const flow = readFlow(given)
    const formId = { id: `form ${sessions.named(request)?.sessionId ?? ''}`, isSecure }
    const base = publicPath(request, config)
    let shownSecret: string | undefined
    let found: Promise<BrowserCaller | undefined> | undefined
    let metadata: Metadata | undefined
    let carried: Carried | undefined
    let problemSoFar: string | undefined

    /** Secret of this browser's cookie, which the answer sets. */
    const secret = () => {
      const { random } = deps
      shownSecret ??= givePageSecret(request, reply, { isSecure, lifetimeSeconds: PAGE_SECONDS, random })
      return shownSecret
    }

    const language = (): Language =>
      pageLanguage(config, { ...(metadata && { metadata }), acceptLanguage: acceptLanguageOf(request) })

    const link = (to: string, more: Readonly<Record<string, string | undefined>> = {}): string => {
      const values = Object.entries({ ...flow, ...more }).filter((pair): pair is [string, string] => Boolean(pair[1]))
      const search = new URLSearchParams(values).toString()
      return `${base}${to}${search && `?${search}`}`
    }

    const sealed = (carry: Carried): string => sealCarried(key, carry, secret(), deps.now())

    const goTo = (to: string, { query: more = {}, carry }: { query?: Fields; carry?: Carried } = {}): FastifyReply =>
      reply.redirect(link(to, { ...more, ...(carry && { c: sealed(carry) }) }), 303)

    const leave = (location: string): FastifyReply =>
      isPost ? leaveTo(config, request, reply, location) : sendTo(config, request, reply, { location, status: 303 })

    const take = (session: SessionBody, { isShared = false } = {}): Promise<string> =>
      takeSession(deps, sessions, { request, reply }, session, { isShared })

    /** Leads to the page that adds a second factor, and then on; `next` is a page of ours. */
    const toSetUp = (next?: string): FastifyReply =>
      goTo(FACTORS_PATH, { query: next === undefined ? {} : { next }, carry: { setUp: 'yes' } })

    /**
     * Signs this browser in with the session of an API answer. Leads to the second factor if the user has one, else to
     * `next`, else to the application. A demanded second factor is added before; a passkey may be offered.
     */
    async function signedIn(session: SessionBody): Promise<FastifyReply> {
      const claims = decodeJwt<{ session_id: string; amr: AmrEntry[] }>(session.access_token)
      // The sign-in that was asked for.
      flow.prompt = undefined
      // A site that is a page of ours needs no tokens: the cookie is enough.
      const own = ownPathOf(config, flow)
      const aal = await take(session, { isShared: !isForPagesAlone(flow.next ?? own ?? '') })
      if (lacksFactor({ factors: session.user.factors as FactorJson[] }, aal)) return goTo('/ui/factor')
      if (flow.next !== undefined) return reply.redirect(link(flow.next, { next: undefined }), 303)
      if (own !== undefined) return reply.redirect(base + own, 303)
      if (aal === 'aal1' && config.mfa.totp.enroll && isSecondFactorDemanded(config, session.user)) return toSetUp()
      if (await passkeyOffer.isDue(request, session.user.id, claims.amr)) {
        passkeyOffer.note(reply)
        return goTo(PASSKEY_PATH)
      }
      const named = { sessionId: claims.session_id, method: claims.amr[0]?.method ?? '' }
      return leave(await addressWithSession(deps, flow, session, named))
    }

    const trustDevice = (token: string): void => {
      const maxAge = config.mfa.trustedDevices.ttlSeconds
      setCookie(reply, { name: deviceCookie, value: token, maxAge, isSecure, sameSite: 'Lax' })
    }

    return {
      ...{ path, query, form, flow, request, reply, isPost, language },
      /** Settings and clock, for pages; changes go through the API. */
      deps,
      /** Sets the refusal that the page of this visit shows. */
      fail: (problem: string): void => {
        problemSoFar = problem
      },

      words: <Words>(table: Table<Words>): Words => table[language()],
      explain: (refusal: Refusal): string => explain(language(), refusal),

      /** Values that an earlier page gave to this one. */
      get carried(): Carried {
        carried ??= openCarried(key, given.c, pageSecretsOf(request, isSecure), deps.now())
        return carried
      },

      /** Returns the signed-in user of this browser. */
      async caller(): Promise<BrowserCaller | undefined> {
        found ??= sessions.find(request, reply)
        const caller = await found
        metadata = caller?.user.user_metadata
        return caller
      },

      /** Whether the account of this browser's session is deleted. */
      isDeleted: (): Promise<boolean> => sessions.isUserGone(request),
      /** Calls an endpoint as this browser; `as` adds the access token of the signed-in user. */
      async api<Body = Record<string, unknown>>(
        method: ApiCall['method'],
        url: string,
        body?: Record<string, unknown>,
        { as }: { as?: BrowserCaller } = {},
      ): Promise<ApiAnswer<Body>> {
        const device = cookiesOf(request).find(([name]) => name === deviceCookie)?.[1]
        const captcha = form.captcha_token ?? form['h-captcha-response'] ?? form['cf-turnstile-response']
        const answer = await callApi<Body>(app, config, request, {
          ...{ method, url, body: body && { ...body, ...(captcha !== undefined && { captcha_token: captcha }) } },
          token: as && (await sessions.tokenOf(as)),
          headers: device === undefined ? {} : { [DEVICE_TOKEN]: device },
        })
        const next = answer.ok ? answer.headers[DEVICE_TOKEN] : undefined
        if (next !== undefined) trustDevice(next)
        return answer
      },

      /** Sends the answer of an endpoint, a file, to the browser; returns a refusal instead, which is not sent. */
      async download(url: string, caller: BrowserCaller): Promise<{ refusal?: Extract<ApiAnswer, { ok: false }> }> {
        const token = await sessions.tokenOf(caller)
        const answer = await streamApi(app, config, request, { method: 'GET', url, token })
        if (!answer.ok) return { refusal: answer }
        const { 'content-type': type, 'content-disposition': disposition } = answer.headers
        const named = { ...PAGE_HEADERS, ...(disposition !== undefined && { 'content-disposition': disposition }) }
        reply
          .headers(named)
          .type(type ?? 'application/octet-stream')
          .send(answer.body)
        return {}
      },

      /** Keeps the token of a trusted device, which replaces the second factor here. */
      trustDevice,

      /** Form that only this browser can send, and only in this session. */
      formOf: ({ action = path, fields = {}, body }: Form): Html => {
        const proof = proofOf(key, formId, secret()).toString('base64url')
        return html`<form method="post" action="${base}${action}">
${hiddenFields({ ...flow, c: given.c, ...fields, proof })}${body}</form>
`
      },
      hasProof: (): boolean =>
        ['same-origin', undefined].includes(request.headers['sec-fetch-site'] as string | undefined) &&
        isProven(request, key, formId, form.proof ?? ''),

      /** Whether this browser keeps cookies, and was shown a page of late. */
      hasCookie: (): boolean => pageSecretsOf(request, isSecure).length > 0,
      /** Address of another page, with the flow. */
      link,
      /**
       * Leads a user on who is signed in here already, as `signedIn` does. The application gets a session of its own.
       */
      async continueAs(caller: BrowserCaller): Promise<FastifyReply> {
        if (lacksFactor(caller.user, caller.session.aal)) return goTo('/ui/factor')
        if (flow.next !== undefined) return reply.redirect(link(flow.next, { next: undefined }), 303)
        return signedIn(await sessionForApplication(deps, request.log, caller, clientOf(request, config)))
      },

      /** Leads on to another page of ours, with the flow. */
      goTo,
      /**
       * Shows this page again, as it was, with a refusal. Answers to forms are redirects: a browser that goes back
       * finds pages, not a question whether to send a form again.
       */
      retry: (carry: Carried, more: Fields = {}): FastifyReply =>
        goTo(path, {
          query: more,
          carry: { ...openCarried(key, given.c, pageSecretsOf(request, isSecure), deps.now()), ...carry },
        }),
      /** Asks to sign in, and leads back to this page. A form says why it was not taken. */
      toSignIn(): FastifyReply {
        const problem = problemSoFar ?? explain(language(), { code: 'session_not_found', message: '' })
        return goTo('/ui/sign-in', { query: { next: path }, ...(isPost && { carry: { problem } }) })
      },

      show({ body, problem = problemSoFar, news, status = reply.statusCode, ...page }: ShownVisit): FastifyReply {
        const above = [problem && notice('problem', problem), news && notice('news', news)]
        return showPage(config, request, reply.code(status), {
          ...{ ...page, language: language() },
          body: html`${above}${body}`,
        })
      },

      /** Takes the session of an API answer into this browser, which shows its own page next. */
      take,
      toSetUp,
      signedIn,
      leave,
      /** The application's address, or the site where none is permitted. */
      target: (): string => targetOf(config, flow),
      /** Whether that is a page of ours, as where there is no application. */
      staysHere: (): boolean => ownPathOf(config, flow) !== undefined,
      /** Public address of an endpoint, for navigations of the browser. */
      apiAddress: (endpoint: string): string => `${externalBase(request, config)}${endpoint}`,

      /** Ends this browser's session here; the API ends the row. */
      signedOut: (): void => sessions.end(reply),

      /**
       * Returns parameters for requests whose mail link or provider leads back to this browser. The verifier follows
       * from the browser's cookie, so that nothing is stored (flows/pages/arrive.ts).
       */
      arrival(): Flow {
        const nonce = Buffer.from(deps.random(12)).toString('base64url')
        const search = new URLSearchParams({ ...flow, attempt: nonce })
        const address = `${externalBase(request, config)}${ARRIVAL_PATH}?${search}`
        if (address.length > MAX_TARGET_LENGTH) return toApplication(flow)
        return {
          redirect_to: address,
          code_challenge: s256(verifierOf(secret(), nonce)),
          code_challenge_method: 's256',
        }
      },
      /** Verifiers that an arrival may have: one for each cookie of this browser, which is one over https. */
      verifiers: (): string[] => pageSecretsOf(request, isSecure).map((each) => verifierOf(each, query.attempt ?? '')),
    }
  }
}

const s256 = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')
