// /ui/account/passkeys: lists, renames, removes and adds passkeys. Only adding needs a script (add-passkey.js): the
// browser makes the key at the press of a button, and the form carries its answer.
import { html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import { table } from '@services/common/pages/table'
import type { Config } from '../../../config.ts'
import type { PasskeyBody } from '../../../core/passkeys/passkey-shape.ts'
import { credentialIn, hasPasskey } from '../../../http/hosted/passkey-offer.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { passkeyWords } from '../../../words/pages/account/passkeys.ts'
import { accountPage, done, type Own, refused, rowButton, showAccount, shownTime, unavailable } from './account-page.ts'

interface Begun {
  challenge_id: string
  options: object
}

export const passkeysPage = accountPage({
  name: 'passkeys',
  isEnabled: ({ passkeys }) => passkeys.enabled,
  get: (own) => showPasskeys(own),
  async post(own) {
    const { form } = own.visit
    const again = (problem: string) => showPasskeys(own, problem)
    if (form.way === 'begin') {
      const begun = await own.api<Begun>('POST', '/passkeys/registration/options', {})
      return begun.ok ? showNew(own, begun.body) : refused(own, begun, again)
    }
    const url = `/passkeys/${encodeURIComponent(form.passkey_id ?? '')}`
    const words = { ...own.visit.words(accountWords), ...own.visit.words(passkeyWords) }
    if (form.way === 'finish') {
      const { credential, id: made } = credentialIn(form.credential)
      const body = { challenge_id: form.challenge_id, credential }
      const added = await own.api('POST', '/passkeys/registration/verify', body)
      if (added.ok) return done(own, words.added)
      return refused(own, added, (problem) =>
        own.visit.goTo(own.visit.path, { carry: { problem, ...(made !== undefined && { made }) } }),
      )
    }
    if (form.way === 'rename') {
      const renamed = await own.api('PATCH', url, { friendly_name: form.name ?? '' })
      return renamed.ok ? done(own, words.saved) : refused(own, renamed, again)
    }
    const removed = await own.api('DELETE', url, {})
    return removed.ok ? done(own, words.removed) : refused(own, removed, again, words.removed)
  },
})

/** Browsers bind keys to the pages that the settings list. */
const canAdd = ({ passkeys, server }: Config) => passkeys.party.origins.includes(new URL(server.externalUrl).origin)

async function showPasskeys(own: Own, problem?: string) {
  const { visit } = own
  const answer = await own.api<PasskeyBody[]>('GET', '/passkeys')
  const words = { ...visit.words(accountWords), ...visit.words(passkeyWords) }
  if (!answer.ok) return unavailable(own, words.passkeys, answer)
  const passkeys = answer.body
  const { problem: refusal, made } = visit.carried
  const isMade = await hasPasskey(visit.deps, own.caller.user.id, made)
  const renamed = passkeys.find(({ id }) => id === visit.query.rename)
  return showAccount(own, {
    ...{ title: words.passkeys, isWide: true },
    ...(isMade ? { news: words.added } : { problem: problem ?? refusal }),
    body: [
      renamed &&
        visit.formOf({
          fields: { way: 'rename', passkey_id: renamed.id },
          body: [
            field({ name: 'name', label: words.newName, value: renamed.friendly_name, required: true, maxlength: 120 }),
            button({ label: words.save }),
          ],
        }),
      table({
        ...{ caption: words.passkeys, empty: words.empty },
        columns: [words.name, words.addedAt, words.usedAt, words.actions],
        rows: passkeys.map(({ id, friendly_name: name, created_at, last_used_at }) => [
          name,
          shownTime(visit, created_at),
          shownTime(visit, last_used_at) ?? words.never,
          html`<div class="row"><a href="${visit.link(visit.path, { rename: id })}">${words.rename}<span class="unseen"> ${name}</span></a>
${visit.formOf({ fields: { way: 'remove', passkey_id: id }, body: rowButton(words.remove, name) })}</div>`,
        ]),
      }),
      canAdd(visit.deps.config) && visit.formOf({ fields: { way: 'begin' }, body: button({ label: words.add }) }),
    ],
  })
}

function showNew(own: Own, { challenge_id, options }: Begun) {
  const { visit } = own
  const words = visit.words(passkeyWords)
  return showAccount(own, {
    title: words.add,
    scripts: ['add-passkey.js'],
    body: [
      html`<p>${words.how}</p>
<p class="notice problem" id="needs-script">${words.needsScript}</p>
<p class="notice problem" id="passkey-problem" role="alert" hidden>${words.failed}</p>
<div id="new-passkey" data-options="${JSON.stringify(options)}">
`,
      visit.formOf({ fields: { way: 'finish', challenge_id, credential: '' }, body: button({ label: words.make }) }),
      html`</div>\n`,
    ],
  })
}
