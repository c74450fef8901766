import type { Page } from '../../../http/hosted/answer-pages.ts'
import { addressesPage } from './addresses.ts'
import { applicationsPage } from './applications.ts'
import { confirmPage } from './confirm.ts'
import { deletionPage } from './deletion.ts'
import { devicesPage } from './devices.ts'
import { exportPage } from './export.ts'
import { factorsPage } from './factors.ts'
import { identitiesPage } from './identities.ts'
import { namePage } from './name.ts'
import { noticesPage } from './notices.ts'
import { overviewPage } from './overview.ts'
import { passkeysPage } from './passkeys.ts'
import { passwordPage } from './password.ts'
import { sessionsPage } from './sessions.ts'

/** The account of the signed-in user, a page for each of its parts. */
export const accountPages: readonly Page[] = [
  overviewPage,
  namePage,
  addressesPage,
  passwordPage,
  passkeysPage,
  factorsPage,
  sessionsPage,
  devicesPage,
  identitiesPage,
  applicationsPage,
  noticesPage,
  exportPage,
  deletionPage,
  confirmPage,
]
