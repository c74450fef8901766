import type { HiddenReason } from '../db/tables.ts'
import type { Words } from './language.ts'

/** Reasons of reports and of hidden clips. */
export const reasonWords: Words<Readonly<Record<HiddenReason, string>>> = {
  en: {
    illegal: 'illegal',
    copyright: 'copyright',
    harassment: 'harassment',
    nsfw: 'not marked as sensitive',
    spam: 'spam',
    other: 'another reason',
    reports: 'reported often',
    scanner: 'found by the scanner',
  },
  de: {
    illegal: 'rechtswidrig',
    copyright: 'Urheberrecht',
    harassment: 'Belästigung',
    nsfw: 'nicht als heikel markiert',
    spam: 'Spam',
    other: 'anderer Grund',
    reports: 'oft gemeldet',
    scanner: 'vom Scanner gefunden',
  },
}
