// /ui/device: a user enters the code of a device without a browser, sees what it asks for, and answers (RFC 8628). The
// code of a link counts as entered.
import { type HtmlValue, html } from '@services/common/html'
import { clientName } from '@services/common/pages/client-name'
import { button, field } from '@services/common/pages/forms'
import { DEVICE_PATH } from '../../../config/pages/page-paths.ts'
import { lacksFactor } from '../../../core/factors/assurance.ts'
import { answerDevice, findDevice, type WaitingDevice } from '../../../core/oauth-server/devices/answer-device.ts'
import { readUserCode, shownUserCode } from '../../../core/oauth-server/devices/user-code.ts'
import { publicIdOf } from '../../../core/oauth-server/find-client.ts'
import { apiError } from '../../../errors.ts'
import type { Answer, Page, Sent } from '../../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../../http/hosted/browser-session.ts'
import type { Visit } from '../../../http/hosted/visit.ts'
import { fill } from '../../../words/language.ts'
import { deviceWords } from '../../../words/pages/oauth/device.ts'
import { shownTime } from '../account/account-page.ts'
import { scopeList, shownClient } from '../account/shown-application.ts'
import { nameOf } from '../sign-in.ts'
import { answerForm, resourceLine } from './answer-form.ts'

export const devicePage: Page = {
  path: DEVICE_PATH,
  get: (visit) => asUser(visit, (caller) => showPage(visit, caller)),
  post: (visit) =>
    asUser(visit, (caller) => {
      const { code, answer } = visit.form
      return answer === undefined ? visit.goTo(DEVICE_PATH, { query: { user_code: code ?? '' } }) : take(visit, caller)
    }),
}

/** Leads to the sign-in, and to the second factor of the user, first. */
async function asUser(visit: Visit, handle: (caller: BrowserCaller) => Answer): Promise<Sent> {
  if (!visit.deps.config.oauthServer.enabled) throw apiError('not_found')
  const caller = await visit.caller()
  if (!caller) return visit.toSignIn()
  if (lacksFactor(caller.user, caller.session.aal)) return visit.goTo('/ui/factor', { query: { next: DEVICE_PATH } })
  return handle(caller)
}

async function showPage(visit: Visit, caller: BrowserCaller) {
  const words = visit.words(deviceWords)
  const { user_code: typed = '' } = visit.flow
  const { news } = visit.carried
  if (typed === '') return news ? visit.show({ title: words.title, news, body: '' }) : showEntry(visit)
  const found = await findEntered(visit, caller, typed)
  return found ? showDevice(visit, caller, found) : showEntry(visit, words.wrong)
}

/** Finds the device of a code; wrong ones are counted. */
async function findEntered(visit: Visit, { user }: BrowserCaller, typed: string): Promise<WaitingDevice | undefined> {
  const refund = await visit.deps.limits.deviceCodeEntered(visit.request, user.id)
  const code = readUserCode(typed)
  const found = code === undefined ? undefined : await findDevice(visit.deps, code)
  if (found) await refund()
  return found
}

function showEntry(visit: Visit, error?: string) {
  const words = visit.words(deviceWords)
  const code = field({
    ...{ name: 'code', label: words.code, error, required: true, autofocus: true, maxlength: 20, autocomplete: 'off' },
    value: error === undefined ? undefined : visit.flow.user_code,
  })
  return visit.show({
    title: words.title,
    body: [
      html`<p>${words.enter}</p>\n`,
      visit.formOf({ fields: { user_code: undefined }, body: [code, button({ label: words.goOn })] }),
    ],
  })
}

async function showDevice(visit: Visit, { user }: BrowserCaller, { device, client }: WaitingDevice) {
  const words = visit.words(deviceWords)
  const name = nameOf(user)
  const [asks, application] = [
    name === undefined ? words.asksGuest : words.asks,
    shownClient({ id: publicIdOf(client), name: client.client_name }),
  ]
  const facts: [label: string, value: HtmlValue][] = [
    [words.shows, html`<strong class="code">${shownUserCode(device.user_code)}</strong>`],
    [words.place, device.ip ?? words.unknown],
    [words.agent, clientName(device.user_agent) ?? words.unknown],
    [words.time, shownTime(visit, device.created_at.toISOString())],
  ]
  return visit.show({
    title: words.title,
    body: [
      html`<p>${fill(asks, { client: application, name: name ?? '' })} ${words.may}</p>\n`,
      await scopeList(visit, device.scopes),
      resourceLine(visit, device.resources),
      html`<ul class="rows">${facts.map(([label, value]) => html`<li class="row"><span>${label}</span> ${value}</li>\n`)}</ul>\n`,
      html`<p>${words.warning}</p>\n`,
      answerForm(visit, { user_code: shownUserCode(device.user_code) }),
    ],
  })
}

async function take(visit: Visit, caller: BrowserCaller) {
  const words = visit.words(deviceWords)
  const status = visit.form.answer === 'allow' ? 'approved' : 'denied'
  const userCode = readUserCode(visit.flow.user_code ?? '') ?? ''
  const refund = await visit.deps.limits.deviceCodeEntered(visit.request, caller.user.id)
  const isTaken = await answerDevice(visit.deps, visit.request.log, caller, { userCode, status })
  if (!isTaken) return visit.goTo(DEVICE_PATH)
  await refund()
  const news = status === 'approved' ? words.allowed : words.denied
  return visit.goTo(DEVICE_PATH, { query: { user_code: '' }, carry: { news } })
}
