// Overview: sign-ups, sign-ins, failures, messages and the queue, of the last 24 hours or 30 days.
import { api } from '../api.js'
import { chart, nameOfDay } from '../kit/chart.js'
import { facts, section } from '../kit/parts.js'
import { html, nothing } from '../lit.js'
import { link } from '../router.js'

/** @typedef {Record<string, number>} Numbers */
/**
 * @typedef {object} Counts
 * @property {string} from
 * @property {Numbers} sign_ups
 * @property {Numbers} sign_ins
 * @property {Record<string, Numbers>} failures
 * @property {{ mail: Numbers, sms: Numbers }} messages
 * @property {{ jobs: number, oldest_seconds: number }} queue
 */

const PERIODS = { hours: 'Last 24 hours', days: 'Last 30 days' }

const HOUR = new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit' })

/** Hours are those of the reader's zone. */
const NAMES = { hours: (/** @type {string} */ from) => HOUR.format(new Date(from)), days: nameOfDay }

/** @type {import('../page.js').Screen} */
export const overview = {
  path: '/overview',
  title: 'Overview',
  inMenu: true,
  async open(page) {
    const period = page.query.get('period') === 'days' ? 'days' : 'hours'
    /** @type {Counts[]} */
    const counts = (await api.get('/admin/statistics', { days: 30 }))[period]
    const name = NAMES[period]
    const drawn = (/** @type {string} */ title, /** @type {(counts: Counts) => Numbers} */ parts) =>
      section(title, chart({ title, name, bars: counts.map((each) => ({ from: each.from, parts: parts(each) })) }))
    page.show(html`
      <nav class="periods" aria-label="Period">
        ${Object.entries(PERIODS).map(([each, title]) => {
          const current = each === period ? 'true' : nothing
          return html`<a href=${link('/overview', { period: each })} aria-current=${current}>${title}</a>`
        })}
      </nav>
      ${totals(counts)}
      ${drawn('Sign-ups', ({ sign_ups: signUps }) => signUps)}
      ${drawn('Sign-ins', ({ sign_ins: signIns }) => signIns)}
      ${drawn('Failures', ({ failures }) => mapped(failures, sum))}
      ${reasons(counts)}
      ${drawn('Mails', ({ messages }) => messages.mail)}
      ${drawn('SMS', ({ messages }) => messages.sms)}
      ${drawn('Longest wait of a job in seconds', ({ queue }) => ({ seconds: queue.oldest_seconds }))}
      ${period === 'days' ? html`<p>Days begin at midnight UTC.</p>` : nothing}`)
  },
}

/** @param {Numbers} numbers */
const sum = (numbers) => Object.values(numbers).reduce((total, each) => total + each, 0)

/** @template Value, Result @param {Record<string, Value>} values @param {(value: Value) => Result} map */
const mapped = (values, map) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))

/** @param {readonly Counts[]} counts */
function totals(counts) {
  const total = (/** @type {(counts: Counts) => number} */ of) => counts.reduce((all, each) => all + of(each), 0)
  return section(
    'Totals',
    facts([
      ['Sign-ups', total(({ sign_ups: signUps }) => sum(signUps))],
      ['Sign-ins', total(({ sign_ins: signIns }) => sum(signIns))],
      ['Failures', total(({ failures }) => sum(mapped(failures, sum)))],
      ['Mails sent', total(({ messages }) => messages.mail.sent ?? 0)],
      ['Messages given up', html`<a href=${link('/messages', { state: 'failed' })}>${total(givenUp)}</a>`],
      ['Most waiting jobs', Math.max(0, ...counts.map(({ queue }) => queue.jobs))],
    ]),
  )
}

/** @param {Counts} counts */
const givenUp = ({ messages }) => (messages.mail.failed ?? 0) + (messages.sms.failed ?? 0)

/** The most frequent reasons of failures. @param {readonly Counts[]} counts */
function reasons(counts) {
  /** @type {Numbers} */
  const byCode = {}
  for (const { failures } of counts) {
    for (const codes of Object.values(failures)) {
      for (const [code, count] of Object.entries(codes)) byCode[code] = (byCode[code] ?? 0) + count
    }
  }
  const sorted = Object.entries(byCode).sort(([, a], [, b]) => b - a)
  return sorted.length === 0 ? nothing : section('Reasons of failures', facts(sorted))
}
