/** What IMPORT_SITES may list; `other` are the pages of everybody else. */
export const SITE_NAMES = [
  'giphy',
  'imgur',
  'streamable',
  'tenor',
  'reddit',
  'twitter',
  'instagram',
  'facebook',
  'other',
] as const
