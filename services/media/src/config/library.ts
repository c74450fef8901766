// Pages for owners of clips and for administrators.
import { oneOf, type Values, type Variables } from '@services/common/config/variables'

export const libraryVariables = {
  LIBRARY: oneOf(['on', 'off'], '`off` removes the pages for owners and administrators, and their cookie.', {
    default: 'on',
  }),
} satisfies Variables

export const librarySettings = ({ LIBRARY }: Values<typeof libraryVariables>) => ({ hasLibrary: LIBRARY === 'on' })
