// Hooks: your own code that the service asks, and its last failures.
import { api } from '../api.js'
import { badge, facts, section, time } from '../kit/parts.js'
import { table } from '../kit/table.js'
import { html } from '../lit.js'

/** @type {import('../page.js').Screen} */
export const hooks = {
  path: '/hooks',
  title: 'Hooks',
  inMenu: true,
  async open(page) {
    const { hooks: all } = await api.get('/admin/hooks')
    page.show(html`
      <p>A hook is your own code, asked at seven points. Variables of the environment enable it; <code>hooks test</code> asks it once.</p>
      ${all.map((/** @type {any} */ hook) => section(hook.point, contentOf(hook), stateOf(hook)))}`)
  },
}

/** @param {any} hook */
const stateOf = ({ enabled }) => (enabled ? badge('enabled', 'good') : badge('disabled'))

/** @param {any} hook */
const contentOf = (hook) => html`
  <p class="hint"><code>${hook.setting}</code></p>
  ${facts([
    ['Address', hook.uri],
    ['Time limit', hook.timeout && `${hook.timeout} s`],
    ['Attempts', hook.attempts],
    ['Signed', hook.signed === undefined ? undefined : hook.signed ? 'yes' : 'no'],
    ['Without an answer', withoutAnswer(hook)],
  ])}
  ${hook.enabled || hook.failures.length > 0 ? failuresOf(hook) : ''}`

/** Points of attempts may count one that their hook does not answer. @param {any} hook */
function withoutAnswer({ point, enabled, fails_open: isOpen }) {
  if (!enabled || !point.endsWith('verification')) return undefined
  return isOpen ? 'the attempt counts' : 'the attempt is refused'
}

/** @param {any} hook */
const failuresOf = ({ point, failures }) =>
  table({
    label: `Failures of ${point}`,
    rows: failures,
    empty: 'No failure in the last 30 days.',
    columns: [
      { head: 'Time', cell: (failure) => time(failure.failed_at) },
      { head: 'Result', cell: (failure) => html`<code>${failure.result}</code>` },
      { head: 'Reason', cell: (failure) => failure.reason },
      { head: 'Failures', cell: (failure) => failure.failures },
      { head: 'Question', cell: (failure) => html`<code>${failure.question_id}</code>` },
    ],
  })
