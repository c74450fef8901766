// Hosted pages as a browser without scripts sees them: headings, notices, forms with their hidden fields.
import type { Answer, TestService } from '../../../../test/service.ts'

/** Origin of the test services' pages. */
export const ORIGIN = 'https://auth.example'

/** Settings by which the account page offers all that it can: passkeys, trusted devices, linking, deletion. */
export const ACCOUNT_SETTINGS = {
  AUTH_HOSTED_PAGES_ENABLED: 'true',
  AUTH_SELF_DELETION_ENABLED: 'true',
  AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
  AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
  AUTH_PASSKEY_ENABLED: 'true',
  AUTH_WEBAUTHN_RP_ID: new URL(ORIGIN).hostname,
  AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Site',
  AUTH_WEBAUTHN_RP_ORIGINS: ORIGIN,
}

export interface SeenForm {
  action: string
  /** Values that a press sends, hidden ones included. */
  fields: Record<string, string>
  button: string
}

export interface SeenPage extends Answer {
  title: string
  problem: string | undefined
  news: string | undefined
  forms: SeenForm[]
  /** Links by their text. */
  links: Record<string, string>
  /** Where the browser goes from here by itself: the header, or a page that goes there. */
  location: string | undefined
}

type Door = Pick<TestService, 'get' | 'submit'>

/** Opens a page; follows redirects between our pages, as a browser does. */
export async function openPage(door: Door, address: string, headers: Record<string, string> = {}): Promise<SeenPage> {
  return follow(door, seen(await door.get(address, headers)), headers)
}

/** Presses the button of a form; `press` is its label, or else the first form is meant. */
export async function send(
  door: Door,
  page: SeenPage,
  fields: Record<string, string> = {},
  { press, headers = {} }: { press?: string; headers?: Record<string, string> } = {},
): Promise<SeenPage> {
  const form = formOf(page, press)
  const answer = seen(await door.submit(form.action, { ...form.fields, ...fields }, headers))
  return follow(door, answer, headers)
}

/** Presses a button twice before the first answer; follows both answers once the browser has both. */
export async function sendAtOnce(door: Door, page: SeenPage, fields = {}, press?: string): Promise<SeenPage[]> {
  const form = formOf(page, press)
  const submit = () => door.submit(form.action, { ...form.fields, ...fields })
  const pages: SeenPage[] = []
  for (const answer of await Promise.all([submit(), submit()])) pages.push(await follow(door, seen(answer), {}))
  return pages
}

function formOf(page: SeenPage, press: string | undefined): SeenForm {
  const form = press === undefined ? page.forms[0] : page.forms.find(({ button }) => button === press)
  if (!form) throw new Error(`no form ${press ?? ''} in ${page.title}: ${page.text}`)
  return form
}

async function follow(door: Door, page: SeenPage, headers: Record<string, string>): Promise<SeenPage> {
  const { location = '' } = page
  if (page.status !== 303 || !/^(https:\/\/auth\.example)?\/ui\//.test(location)) return page
  return openPage(door, location.replace(ORIGIN, ''), headers)
}

function seen(answer: Answer): SeenPage {
  const { text, headers } = answer
  const first = (pattern: RegExp) => {
    const [, inside] = pattern.exec(text) ?? []
    return inside === undefined ? undefined : plain(inside)
  }
  const refresh = first(/http-equiv="refresh" content="\d+;url=([^"]*)"/)
  return {
    ...answer,
    title: first(/<h1>(.*?)<\/h1>/s) ?? '',
    problem: first(/<p class="notice problem"[^>]*>(.*?)<\/p>/s),
    news: first(/<p class="notice news"[^>]*>(.*?)<\/p>/s),
    forms: [...text.matchAll(/<form method="post" action="([^"]*)">(.*?)<\/form>/gs)].map(
      ([, action = '', body = '']) => ({
        action: plain(action),
        fields: Object.fromEntries(
          [...body.matchAll(/<input\b([^>]*)>/g)].flatMap(([, given = '']) => {
            const value = (name: string) => plain(new RegExp(` ${name}="([^"]*)"`).exec(given)?.[1] ?? '')
            const isSent = value('type') !== 'checkbox' || / checked\b/.test(given)
            return isSent ? [[value('name'), value('value')]] : []
          }),
        ),
        button: plain(/<button[^>]*>(.*?)<\/button>/s.exec(body)?.[1] ?? ''),
      }),
    ),
    links: Object.fromEntries(
      [...text.matchAll(/<a\b[^>]* href="([^"]*)"[^>]*>(.*?)<\/a>|<a href="([^"]*)"[^>]*>(.*?)<\/a>/gs)].map(
        ([, href, label, otherHref, otherLabel]) => [plain(label ?? otherLabel ?? ''), plain(href ?? otherHref ?? '')],
      ),
    ),
    location: headers.location === undefined ? refresh : String(headers.location),
  }
}

const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

const plain = (markup: string) => markup.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] ?? entity)
