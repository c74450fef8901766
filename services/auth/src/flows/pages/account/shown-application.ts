import { type Html, html } from '@services/common/html'
import { listOwnScopes } from '../../../core/oauth-server/own-scopes.ts'
import type { Visit } from '../../../http/hosted/visit.ts'
import { consentWords } from '../../../words/pages/oauth/consent.ts'
import { scopeWords } from '../../../words/pages/oauth/scopes.ts'

/** Longest name that is shown: a longer one could push the rest of the sentence out of sight. */
const MAX_NAME = 80

/** Name of an application. Anyone can write a metadata document, whose address is the id: its host is the name. */
export function shownClient({ id, name }: { id: string; name?: string | null | undefined }): string {
  return /^https?:/.test(id) ? new URL(id).host : (name ?? id).slice(0, MAX_NAME)
}

/** Scopes in words: standard ones in the user's language, others as their operator described them. */
export async function scopeList(visit: Visit, scopes: readonly string[]): Promise<Html> {
  const standard: Readonly<Record<string, string>> = visit.words(scopeWords)
  const isStandard = scopes.every((name) => Object.hasOwn(standard, name))
  const own = isStandard ? [] : await listOwnScopes(visit.deps)
  const sentences = scopes.map((name) => {
    if (Object.hasOwn(standard, name)) return standard[name]
    const scope = own.find((each) => each.name === name)
    return scope?.descriptions[visit.language()] ?? scope?.description ?? name
  })
  const shown = sentences.length > 0 ? sentences : [visit.words(consentWords).nothing]
  return html`<ul>${shown.map((sentence) => html`<li>${sentence}</li>\n`)}</ul>\n`
}
