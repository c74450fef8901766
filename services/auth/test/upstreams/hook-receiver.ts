// Receivers of hooks on real sockets, with the questions that they were asked: of those that send messages, and of any.
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import { startTestService, type TestService } from '../service.ts'
import { startUpstream, type Upstream } from '../upstream.ts'

export const HOOK_SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes, ok').toString('base64')}`

export interface Question {
  id: string
  metadata: { uuid: string; name: string; ip_address?: string }
  // biome-ignore lint/suspicious/noExplicitAny: the payload is what the test says it is
  user: any
  email_data: Record<string, string>
  sms: Record<string, string>
}

export type Respond = Parameters<Upstream['answer']>[0]

/** Answers with a body as JSON. */
export const answers =
  (body: object, status = 200, headers: Record<string, string> = {}): Respond =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

export interface HookReceiver extends Upstream {
  settings(point: 'EMAIL' | 'SMS', more?: Record<string, string>): Record<string, string>
  /** Forgets what it was asked. */
  forget(): void
  /** Questions in order, their signatures made by the library of receivers. */
  questions(): Question[]
  /** Waits for the next question of the kind after those that were taken, and takes it. */
  next(what?: { type?: string; to?: string }): Promise<Question>
}

export async function startReceiver(): Promise<HookReceiver> {
  const upstream = await startUpstream(answers({}))
  const taken = new Set<number>()
  const questions = () =>
    upstream.requests.map(({ body, headers }) => {
      const id = String(headers['webhook-id'])
      // Signed anew: checking would compare the test's clock with the machine's.
      const signedAt = new Date(Number(headers['webhook-timestamp']) * 1000)
      expect(headers['webhook-signature']).toBe(new Webhook(HOOK_SECRET).sign(id, signedAt, body))
      return { id, ...JSON.parse(body) } as Question
    })
  const isWanted = ({ email_data: mail, sms }: Question, { type, to }: { type?: string; to?: string }) =>
    (type === undefined || (mail?.email_action_type ?? sms?.kind) === type) &&
    (to === undefined || [mail?.recipient, mail?.recipient_new, sms?.phone].includes(to))
  return {
    ...upstream,
    settings: (point, more = {}) =>
      Object.fromEntries(
        Object.entries({
          ENABLED: 'true',
          URI: `${upstream.url}/hook`,
          SECRETS: `v1,${HOOK_SECRET}`,
          ...more,
        }).map(([name, value]) => [`AUTH_HOOK_SEND_${point}_${name}`, value]),
      ),
    questions,
    forget() {
      upstream.requests.length = 0
      taken.clear()
    },
    async next(what = {}) {
      const find = () => questions().findIndex((question, index) => !taken.has(index) && isWanted(question, what))
      await expect.poll(find).not.toBe(-1)
      const index = find()
      taken.add(index)
      return questions()[index] as Question
    },
  }
}

/** Settings of hooks that are asked without a signature, by point as in their variables. */
export const unsignedHooks = ({ url }: Pick<Upstream, 'url'>, ...points: string[]): Record<string, string> =>
  Object.fromEntries(
    points.flatMap((point) => [
      [`AUTH_HOOK_${point}_ENABLED`, 'true'],
      [`AUTH_HOOK_${point}_URI`, url],
      [`AUTH_HOOK_${point}_UNSIGNED`, 'true'],
    ]),
  )

export interface Decider<Asked> extends Upstream {
  /** Sets what the hook does with the next questions. */
  decide(how: (asked: Asked) => object | Promise<object>): void
  asked(): Asked[]
}

/** A receiver that decides by the question. */
export async function startDecider<Asked>(first: (asked: Asked) => object): Promise<Decider<Asked>> {
  const receiver = await startUpstream(() => {})
  const decide: Decider<Asked>['decide'] = (how) =>
    receiver.answer(async (response, body) => answers(await how(JSON.parse(body)))(response, body))
  decide(first)
  return { ...receiver, decide, asked: () => receiver.requests.map(({ body }) => JSON.parse(body)) }
}

/** A service without a mail server and a gateway, whose messages the receiver sends. */
export const startSendingService = (
  receiver: HookReceiver,
  settings: Record<string, string> = {},
): Promise<TestService> =>
  startTestService({
    ...{ AUTH_SMTP_HOST: '', AUTH_SMTP_PORT: '', AUTH_SMTP_ADMIN_EMAIL: '' },
    ...receiver.settings('EMAIL'),
    ...receiver.settings('SMS'),
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    AUTH_SMS_MAX_PER_NUMBER: '1000/1h',
    ...settings,
  })

/** Link that senders build from the data of a mail. */
export const linkOf = (
  { site_url: site, email_action_type: type, redirect_to: to }: Record<string, string>,
  token = '',
) => `${new URL(site as string).pathname.replace(/\/$/, '')}/verify?token=${token}&type=${type}&redirect_to=${to}`
