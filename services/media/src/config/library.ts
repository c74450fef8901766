// Pages for owners of clips and for administrators, the views that they show, and the log of administrators.
import { duration, oneOf, type Values, type Variables } from '@services/common/config/variables'

export const libraryVariables = {
  LIBRARY: oneOf(['on', 'off'], '`off` removes the pages for owners and administrators, and their cookie.', {
    default: 'on',
  }),
  VIEWS: oneOf(['on', 'off'], '`off` counts no views of clips.', { default: 'on' }),
  VIEWS_KEEP: duration('Time for which views are known by day; then they are in the sum alone.', { default: '400d' }),
  AUDIT_KEEP: duration('Time for which acts of administrators and commands are in the audit log.', {
    default: '400d',
    positive: true,
  }),
} satisfies Variables

export const librarySettings = ({ LIBRARY, VIEWS, VIEWS_KEEP, AUDIT_KEEP }: Values<typeof libraryVariables>) => ({
  hasLibrary: LIBRARY === 'on',
  views: { areCounted: VIEWS === 'on', keepSeconds: VIEWS_KEEP },
  auditKeepSeconds: AUDIT_KEEP,
})
