// Mails: their kinds, how each looks in each language, and a sample to oneself. The body is shown as text: the policy
// of the console lets no style of a mail in, and a sample shows the real thing.
import { api } from '../api.js'
import { badge, button, section } from '../kit/parts.js'
import { table } from '../kit/table.js'
import { act } from '../kit/toast.js'
import { html, nothing } from '../lit.js'
import { link } from '../router.js'

/** @type {Record<string, string>} */
const SOURCES = { built_in: 'built in', file: 'your file', url: 'your URL' }

/** @type {import('../page.js').Screen} */
export const mailTemplates = {
  path: '/mail-templates',
  title: 'Mail templates',
  inMenu: true,
  async open(page) {
    const { templates, sent_by } = await api.get('/admin/mail-templates')
    page.show(html`
      ${sent_by === 'hook' ? html`<p>The send-email hook writes the mails itself: it uses no template.</p>` : nothing}
      ${table({
        label: 'Mail templates',
        rows: templates,
        empty: 'There are none.',
        columns: [
          { head: 'Mail', cell: ({ kind }) => html`<a href=${link(`/mail-templates/${kind}`)}>${kind}</a>` },
          { head: 'State', cell: ({ enabled }) => (enabled ? badge('enabled', 'good') : badge('disabled')) },
          { head: 'Body', cell: ({ source }) => SOURCES[source] ?? source },
          { head: 'Subject', cell: ({ own_subject }) => (own_subject ? 'yours' : 'built in') },
        ],
      })}`)
  },
}

/** @type {import('../page.js').Screen} */
export const mailTemplate = {
  path: '/mail-templates/:kind',
  title: 'Mail template',
  async open(page) {
    const { kind } = page.params
    const [{ languages }, mail] = await Promise.all([
      api.get('/admin/mail-templates'),
      api.get(`/admin/mail-templates/${kind}`, { language: page.query.get('language') }),
    ])
    page.setTitle(`Mail: ${kind}`)
    page.show(html`
      <p><a href=${link('/mail-templates')}>All mail templates</a></p>
      <div class="bar">
        <nav class="actions" aria-label="Languages">
          ${languages.map((/** @type {string} */ language) => languageOf(kind, language, mail.language))}
        </nav>
        <div class="actions">${button('Send to myself', () => send(mail), 'primary')}</div>
      </div>
      ${section('Subject', html`<p>${mail.subject}</p>`, mail.is_own ? badge('your template', 'good') : badge('built in'))}
      ${section('Text', part('Text of the mail', mail.text))}
      ${section('HTML', part('HTML of the mail', mail.html))}`)
  },
}

/** @param {string | undefined} kind @param {string} language @param {string} shown */
const languageOf = (kind, language, shown) =>
  language === shown
    ? html`<strong aria-current="page">${language}</strong>`
    : html`<a href=${link(`/mail-templates/${kind}`, { language })}>${language}</a>`

/** @param {{ kind: string, language: string }} mail */
const send = ({ kind, language }) =>
  act(() => api.post(`/admin/mail-templates/${kind}/send`, { language }), 'Sample queued to your own address')

/** It can have the focus, to be scrolled by keys. @param {string} label @param {string} text */
const part = (label, text) => html`<pre tabindex="0" role="region" aria-label=${label}>${text}</pre>`
