/** Values of IMPORT_SITES; `other` is every unknown site. */
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
